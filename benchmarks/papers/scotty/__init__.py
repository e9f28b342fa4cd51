"""Section 10 of the paper on Scotty: slicing beside tuple buffers, aggregate trees and buckets."""
