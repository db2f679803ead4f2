"""The registration desk of a conference: two tools to copy, on a real database and a real mail server.

``lookup_registration`` finds a registration, ``send_registration_email`` sends its documents again. Both
return private data, and neither logs anything.
"""

from examples.registration.desk import RegistrationDesk
from examples.registration.records import create_database
from examples.registration.tools import (
    LookupRegistration,
    SendRegistrationEmail,
    registration_tools,
)

__all__ = [
    "LookupRegistration",
    "RegistrationDesk",
    "SendRegistrationEmail",
    "create_database",
    "registration_tools",
]
