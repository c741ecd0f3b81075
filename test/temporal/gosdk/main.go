// A worker of Temporal's own Go SDK that serves two functions of a plan: sdkworker ADDRESS QUEUE; says "up" when it does.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
)

type input struct {
	Text string `json:"text"`
}

func shout(_ context.Context, in input) (map[string]string, error) {
	return map[string]string{"said": strings.ToUpper(in.Text)}, nil
}

func refuse(_ context.Context, in input) (string, error) {
	return "", temporal.NewNonRetryableApplicationError("not for "+in.Text, "NOT_FOR_YOU", nil)
}

func main() {
	to, err := client.Dial(client.Options{HostPort: os.Args[1]})
	if err != nil {
		panic(err)
	}
	w := worker.New(to, os.Args[2], worker.Options{DisableWorkflowWorker: true})
	w.RegisterActivityWithOptions(shout, activity.RegisterOptions{Name: "shout"})
	w.RegisterActivityWithOptions(refuse, activity.RegisterOptions{Name: "refuse"})
	if err := w.Start(); err != nil {
		panic(err)
	}
	fmt.Println("up")
	<-worker.InterruptCh()
	w.Stop()
}
