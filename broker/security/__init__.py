"""Who a client is (principal) and what it may do (authorizer)."""
