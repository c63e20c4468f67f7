"""`probe topology` of one computer: its devices, what is between them, and their drawing."""
