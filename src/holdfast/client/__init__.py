"""A session on a gateway elsewhere: `connect(url, token)`."""
