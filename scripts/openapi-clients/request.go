package main

import (
	"context"
	"fmt"
	"os"

	openapi "github.com/GIT_USER_ID/GIT_REPO_ID"
)

func main() {
	configuration := openapi.NewConfiguration()
	configuration.Servers = openapi.ServerConfigurations{{URL: os.Getenv("KITH_URL")}}
	client := openapi.NewAPIClient(configuration)
	ctx := context.WithValue(context.Background(), openapi.ContextAccessToken, os.Getenv("KITH_TOKEN"))
	body := openapi.NewPersonBody()
	body.SetExternalId("go")
	body.SetFirstName("Ada")
	if _, _, err := client.PeopleAPI.CreatePerson(ctx).PersonBody(*body).Execute(); err != nil {
		panic(err)
	}
	read, _, err := client.PeopleAPI.GetPerson(ctx, "go").Execute()
	if err != nil {
		panic(err)
	}
	person := read.GetData()
	fmt.Println(person.GetFirstName())
}
