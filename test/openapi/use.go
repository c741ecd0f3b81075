// What oapi-codegen writes, at work: URL TOKEN.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"time"

	"example.test/use/api"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	ctx, url, token := context.Background(), os.Args[1], os.Args[2]
	signed := func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+token)
		return nil
	}
	client, err := api.NewClientWithResponses(url, api.WithRequestEditorFn(signed))
	must(err)
	var body api.PostRunsJSONRequestBody
	must(json.Unmarshal([]byte(`{"runId":"from-go","document":"{\"planId\":\"p\",\"planVersion\":\"1\",\"steps\":[{\"stepId\":\"a\",\"kind\":\"noop\"}]}"}`), &body))
	started, err := client.PostRunsWithResponse(ctx, nil, body)
	must(err)
	if started.StatusCode() != 202 && started.StatusCode() != 200 {
		must(fmt.Errorf("start: %s", started.Body))
	}
	for i := 0; ; i++ {
		status, err := client.GetRunsByRunStatusWithResponse(ctx, "from-go")
		must(err)
		if status.JSON200 == nil || i == 600 {
			must(fmt.Errorf("status: %s", status.Body))
		}
		if status.JSON200.Status == "COMPLETED" {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	absent, err := client.GetRunsByRunWithResponse(ctx, "nobody", nil)
	must(err)
	if absent.StatusCode() != 404 {
		must(fmt.Errorf("absent: %s", absent.Body))
	}
	fmt.Println("go: ok")
}
