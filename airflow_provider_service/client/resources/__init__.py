"""The endpoints of the service, one module per resource.

"Safe to repeat" means that a second call does no harm; the client then repeats a call that failed for a passing reason
by itself, within the connection's ``retry_deadline``. That holds for every call that only reads. Other calls are
repeated only if the service has certainly not processed them.
"""
