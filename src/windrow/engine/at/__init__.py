"""Queries asked at points in time: which events each point sees, and what aggregates say of them."""
