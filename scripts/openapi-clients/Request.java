import org.openapitools.client.ApiClient;
import org.openapitools.client.api.PeopleApi;
import org.openapitools.client.model.PersonBody;

class Request {
    public static void main(String[] arguments) throws Exception {
        ApiClient client = new ApiClient();
        client.setBasePath(System.getenv("KITH_URL"));
        client.setBearerToken(System.getenv("KITH_TOKEN"));
        PeopleApi people = new PeopleApi(client);
        PersonBody body = new PersonBody().externalId("java").firstName("Ada");
        people.createPerson(body, null, null, null, null, null);
        System.out.println(people.getPerson("java", null, null, null, null, null, null).getData().getFirstName());
    }
}
