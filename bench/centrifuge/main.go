// A control from outside this project: a minimal server with the original Go library of the Centrifuge protocol.
// The fleet loads it like any other target, see docs/benchmarking.md.
//
//	go run . -address 127.0.0.1:9000 -api-key KEY
package main

import (
	"context"
	"encoding/json"
	"flag"
	"log"
	"net/http"
	"time"

	"github.com/centrifugal/centrifuge"
)

type publishCommand struct {
	Channel string          `json:"channel"`
	Data    json.RawMessage `json:"data"`
}

// The server API of the fleet's publishers: batches of publish commands. Benchmarks send single ones.
type batchRequest struct {
	Commands []struct {
		Publish *publishCommand `json:"publish"`
	} `json:"commands"`
}

func main() {
	address := flag.String("address", "127.0.0.1:9000", "to listen on")
	key := flag.String("api-key", "", "of the server API; without it there is none")
	history := flag.Int("history", 0, "publications that a channel keeps, for a minute; 0: none, and no recovery")
	flag.Parse()

	node, err := centrifuge.New(centrifuge.Config{})
	if err != nil {
		log.Fatal(err)
	}
	node.OnConnecting(func(ctx context.Context, e centrifuge.ConnectEvent) (centrifuge.ConnectReply, error) {
		return centrifuge.ConnectReply{Credentials: &centrifuge.Credentials{UserID: ""}}, nil
	})
	node.OnConnect(func(client *centrifuge.Client) {
		client.OnSubscribe(func(e centrifuge.SubscribeEvent, cb centrifuge.SubscribeCallback) {
			cb(centrifuge.SubscribeReply{Options: centrifuge.SubscribeOptions{EnableRecovery: *history > 0}}, nil)
		})
		client.OnPublish(func(e centrifuge.PublishEvent, cb centrifuge.PublishCallback) {
			cb(centrifuge.PublishReply{Options: centrifuge.PublishOptions{HistorySize: *history, HistoryTTL: time.Minute}}, nil)
		})
	})
	if err := node.Run(); err != nil {
		log.Fatal(err)
	}

	anyOrigin := func(*http.Request) bool { return true }
	http.Handle("/connection/websocket", centrifuge.NewWebsocketHandler(node, centrifuge.WebsocketConfig{CheckOrigin: anyOrigin}))
	http.Handle("/connection/http_stream", centrifuge.NewHTTPStreamHandler(node, centrifuge.HTTPStreamConfig{}))
	http.Handle("/connection/sse", centrifuge.NewSSEHandler(node, centrifuge.SSEConfig{}))
	http.Handle("/emulation", centrifuge.NewEmulationHandler(node, centrifuge.EmulationConfig{}))
	http.HandleFunc("/health", func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("{}")) })
	if *key != "" {
		publish := func(command *publishCommand) json.RawMessage {
			if command == nil {
				return json.RawMessage(`{"error":{"code":107,"message":"bad request"}}`)
			}
			if _, err := node.Publish(command.Channel, command.Data, centrifuge.WithHistory(*history, time.Minute)); err != nil {
				return json.RawMessage(`{"error":{"code":100,"message":"internal server error"}}`)
			}
			return nil
		}
		// Decodes a request of the server API into command, and reports whether it is valid.
		accept := func(w http.ResponseWriter, r *http.Request, command any) bool {
			if r.Header.Get("X-API-Key") != *key {
				w.WriteHeader(http.StatusUnauthorized)
				return false
			}
			if err := json.NewDecoder(r.Body).Decode(command); err != nil {
				w.WriteHeader(http.StatusBadRequest)
				return false
			}
			w.Header().Set("Content-Type", "application/json")
			return true
		}
		http.HandleFunc("/api/batch", func(w http.ResponseWriter, r *http.Request) {
			var batch batchRequest
			if !accept(w, r, &batch) {
				return
			}
			replies := make([]json.RawMessage, len(batch.Commands))
			for i, command := range batch.Commands {
				if replies[i] = publish(command.Publish); replies[i] == nil {
					replies[i] = json.RawMessage(`{"publish":{}}`)
				}
			}
			json.NewEncoder(w).Encode(map[string]any{"replies": replies})
		})
		http.HandleFunc("/api/publish", func(w http.ResponseWriter, r *http.Request) {
			var command publishCommand
			if !accept(w, r, &command) {
				return
			}
			reply := publish(&command)
			if reply == nil {
				reply = json.RawMessage(`{"result":{}}`)
			}
			w.Write(reply)
		})
	}
	log.Print("listens on ", *address)
	log.Fatal(http.ListenAndServe(*address, nil))
}
