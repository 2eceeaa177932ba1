import os

import openapi_client

configuration = openapi_client.Configuration(host=os.environ["KITH_URL"], access_token=os.environ["KITH_TOKEN"])
people = openapi_client.PeopleApi(openapi_client.ApiClient(configuration))
people.create_person(openapi_client.PersonBody(external_id="python", first_name="Ada"))
print(people.get_person("python").data.first_name)
