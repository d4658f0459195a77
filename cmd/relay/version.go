package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is set by make dist (-ldflags "-X main.version=v1.2.3").
var version string

type versionCmd struct{ jsonFlag }

func (c *versionCmd) Run(a *app) error {
	v := struct {
		Version  string `json:"version"`
		Revision string `json:"revision,omitempty"`
		Go       string `json:"go"`
		Platform string `json:"platform"`
	}{versionName(), revision(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
	if c.JSON {
		return a.printJSON(v)
	}
	_, err := fmt.Fprintf(a.stdout, "relay %s %s %s\n", v.Version, v.Go, v.Platform)
	return err
}

// versionName is what make dist set, else what go install knows.
func versionName() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

func revision() string {
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}
