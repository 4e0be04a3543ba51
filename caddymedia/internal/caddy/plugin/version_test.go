package plugin

import (
	"runtime/debug"
	"strings"
	"testing"
)

func TestVersion(t *testing.T) {
	t.Parallel()
	ours := func(version string, replaced *debug.Module) *debug.Module {
		return &debug.Module{Path: modulePath, Version: version, Replace: replaced}
	}
	committed := []debug.BuildSetting{
		{Key: "vcs.revision", Value: "c4827f2d9e1b5a60337f"}, {Key: "vcs.time", Value: "2026-11-28T05:02:24+01:00"}, {Key: "vcs.modified", Value: "false"},
	}
	changed := []debug.BuildSetting{committed[0], {Key: "vcs.modified", Value: "true"}}
	for _, tt := range []struct {
		name, main  string
		mainVersion string
		module      *debug.Module
		settings    []debug.BuildSetting
		want        string
	}{
		{"published", "caddy", "", ours("v1.4.0", nil), nil, "v1.4.0"},
		{"published, in another repository", "example.com/shop", "", ours("v1.4.0", nil), committed, "v1.4.0"},
		{"fork", "caddy", "", ours("v1.4.0", &debug.Module{Path: "example.com/fork", Version: "v1.4.1"}), nil, "example.com/fork v1.4.1"},
		{"folder", "caddy", "", ours("v0.0.0-00010101000000-000000000000", &debug.Module{Path: "/home/eva/media", Version: "(devel)"}), nil, unknownBuild},
		{"folder, in another repository", "example.com/shop", "", ours("v0.0.0", &debug.Module{Path: "../media"}), committed, unknownBuild},
		{"checkout", modulePath, "v0.0.0-20261128040224-c4827f2d9e1b", nil, committed, "commit c4827f2d9e1b of 2026-11-28 04:02"},
		{"checkout after a release", modulePath, "v1.4.1-0.20261128040224-c4827f2d9e1b", nil, committed, "commit c4827f2d9e1b of 2026-11-28 04:02"},
		{"checkout of a release", modulePath, "v1.4.0", nil, committed, "v1.4.0"},
		{"checkout of a release candidate", modulePath, "v1.4.0-rc.1", nil, committed, "v1.4.0-rc.1"},
		{"changed checkout of a release", modulePath, "v1.4.0+dirty", nil, changed, "commit c4827f2d9e1b with changes"},
		{"go install of a commit", modulePath, "v1.4.1-0.20261128040224-c4827f2d9e1b", nil, nil, "v1.4.1-0.20261128040224-c4827f2d9e1b"},
		{"changed checkout", modulePath, "", nil, changed, "commit c4827f2d9e1b with changes"},
		{"go install", modulePath, "v1.4.0", nil, nil, "v1.4.0"},
		{"go run", modulePath, "(devel)", nil, nil, unknownBuild},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			info := &debug.BuildInfo{
				GoVersion: "go1.26.9", Main: debug.Module{Path: tt.main, Version: tt.mainVersion}, Settings: tt.settings,
				Deps: []*debug.Module{{Path: caddyPath, Version: "v2.11.9"}},
			}
			if tt.module != nil {
				info.Deps = append(info.Deps, tt.module)
			}
			if got, want := versionOf(info), tt.want+", Caddy v2.11.9, go1.26.9"; got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
	if got := OwnVersion() + ", "; !strings.HasPrefix(Version(), got) {
		t.Errorf("the first part of %q is %q", Version(), got)
	}
	if got := Version(); !strings.Contains(got, ", go1.") {
		t.Errorf("this build is %q", got)
	}
}
