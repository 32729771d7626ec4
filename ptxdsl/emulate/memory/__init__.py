"""The bytes of the state spaces, and the gateway to them."""
