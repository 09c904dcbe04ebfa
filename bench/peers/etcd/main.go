// Command etcd is the benchmark's peer etcd: a server, and a worker that locks through concurrency.Mutex. It is a
// module of its own, since the server brings a hundred others along.
//
//	etcd server FOLDER      a server with its data in FOLDER; prints where it listens, and ends with its input
//	etcd worker JOB NAME key=value …    as bench/worker.go has it, and server=ADDRESS
package main

import (
	"fmt"
	"io"
	"net/url"
	"os"
	"time"

	"go.etcd.io/etcd/api/v3/version"
	"go.etcd.io/etcd/server/v3/embed"
)

func main() {
	err := fmt.Errorf("usage: etcd server FOLDER | worker JOB NAME key=value … | version")
	switch {
	case len(os.Args) == 2 && os.Args[1] == "version":
		fmt.Println("etcd " + version.Version)
		return
	case len(os.Args) == 3 && os.Args[1] == "server":
		err = serve(os.Args[2])
	case len(os.Args) > 3 && os.Args[1] == "worker":
		err = work(os.Args[2], os.Args[4:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve is one member that is a cluster alone, with etcd's own defaults: it syncs each change before it answers.
func serve(folder string) error {
	cfg := embed.NewConfig()
	cfg.Dir = folder
	cfg.LogLevel = "error"
	anyPort, err := url.Parse("http://127.0.0.1:0")
	if err != nil {
		return err
	}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{*anyPort}, []url.URL{*anyPort}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{*anyPort}, []url.URL{*anyPort}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	server, err := embed.StartEtcd(cfg)
	if err != nil {
		return err
	}
	defer server.Close()
	select {
	case <-server.Server.ReadyNotify():
	case err := <-server.Err():
		return err
	case <-time.After(30 * time.Second):
		return fmt.Errorf("the server was not ready after 30 s")
	}
	fmt.Println("http://" + server.Clients[0].Addr().String())
	_, err = io.Copy(io.Discard, os.Stdin) // its end is the bench's
	return err
}
