import os

from kith_client import AuthenticatedClient
from kith_client.api.people import create_person, get_person
from kith_client.models import PersonBody

client = AuthenticatedClient(base_url=os.environ["KITH_URL"], token=os.environ["KITH_TOKEN"])
create_person.sync(client=client, body=PersonBody(external_id="openapi-python-client", first_name="Ada"))
print(get_person.sync("openapi-python-client", client=client).data.first_name)
