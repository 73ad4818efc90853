"""HTTP/1.1 for the app: `head.py` and `body.py` parse, `connection.py` is one connection, `listener.py` all of them."""
