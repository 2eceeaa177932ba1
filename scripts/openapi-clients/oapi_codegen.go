package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"kith"
)

func main() {
	authorize := func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+os.Getenv("KITH_TOKEN"))
		return nil
	}
	client, err := kith.NewClientWithResponses(os.Getenv("KITH_URL"), kith.WithRequestEditorFn(authorize))
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	id, name := "oapi-codegen", "Ada"
	body := kith.PersonBody{ExternalId: &id, FirstName: &name}
	if _, err := client.CreatePersonWithResponse(ctx, &kith.CreatePersonParams{}, body); err != nil {
		panic(err)
	}
	read, err := client.GetPersonWithResponse(ctx, id, &kith.GetPersonParams{})
	if err != nil {
		panic(err)
	}
	fmt.Println(*read.JSON200.Data.FirstName)
}
