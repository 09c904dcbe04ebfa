package proc

import (
	"encoding/json"
	"os"
	"testing"
)

const (
	bootA = "0f8fad5b-d9cb-469f-a165-70867728950e"
	bootB = "7c9e6679-7425-40de-944b-e07fc1f90ae7"

	initialNS = 0xEFFFFFFC // the number is the kernel's; written again so that a changed constant shows
	otherNS   = 0xF0000005
	timeA     = 0xEFFFFFFA
	timeB     = 0xF0000007
)

// machine is the evidence of one made-up system.
type machine struct {
	host    string
	own     identity
	answers []answer // one for each probe; any further probe fails the test
	seen    *sighting
	alone   bool
	local   bool

	looked, askedLocal int
}

func (m *machine) judge(t *testing.T, h Holder) Judgement {
	t.Helper()
	f := facts{
		hostName: func() string { return m.host },
		own:      func() identity { return m.own },
		probe: func(pid int) answer {
			if int64(pid) != h.PID {
				t.Errorf("probed %d, want %d", pid, h.PID)
			}
			if len(m.answers) == 0 {
				t.Errorf("pid %d probed when it must not be", pid)
				return gone
			}
			a := m.answers[0]
			m.answers = m.answers[1:]
			return a
		},
		look: func(int) (sighting, bool) {
			m.looked++
			if m.seen == nil {
				return sighting{}, false
			}
			return *m.seen, true
		},
		alone: func(int) bool { return m.alone },
		local: func(path string) bool {
			m.askedLocal++
			if path != "near" {
				t.Errorf("asked about filesystem of %q", path)
			}
			return m.local
		},
	}
	j := f.judge(h, "near")
	if len(m.answers) != 0 {
		t.Errorf("%d probes not made", len(m.answers))
	}
	return j
}

// Systems a reader may be on.
func linux() identity {
	return identity{
		ID:      ID{BootID: bootA, PidNS: initialNS, TimeNS: timeA, StartTime: 7},
		initial: true, ticksFromBoot: true,
	}
}

func linuxWith(change func(*identity)) identity {
	me := linux()
	change(&me)
	return me
}

func container() identity {
	return linuxWith(func(me *identity) { me.PidNS, me.initial = otherNS, false })
}

func noProc() identity { return identity{ticksFromBoot: true} }

func oldKernel() identity {
	return linuxWith(func(me *identity) {
		me.PidNS, me.TimeNS, me.initial, me.onePIDSpace, me.oneClock = 0, 0, false, true, true
	})
}

func windowsLike() identity {
	return identity{ID: ID{StartTime: 7}, initial: true, onePIDSpace: true, oneClock: true}
}

// rec is a whole proc member written on the linux() machine by a process that began at 100.
func rec(change ...func(*ID)) *ID {
	id := ID{BootID: bootA, PidNS: initialNS, TimeNS: timeA, StartTime: 100}
	for _, c := range change {
		c(&id)
	}
	return &id
}

func boot(s string) func(*ID)    { return func(id *ID) { id.BootID = s } }
func pidNS(n uint64) func(*ID)   { return func(id *ID) { id.PidNS = n } }
func timeNS(n uint64) func(*ID)  { return func(id *ID) { id.TimeNS = n } }
func started(n uint64) func(*ID) { return func(id *ID) { id.StartTime = n } }

func TestDecisionTable(t *testing.T) {
	same := &sighting{start: 100}
	later := &sighting{start: 200}
	zombie := &sighting{start: 100, zombie: true}
	once := func(a ...answer) []answer { return a }

	tests := []struct {
		name string
		m    machine
		h    Holder
		want Judgement
	}{
		// Row 1: never probed. A probe in these fails the test, since no answer is provided.
		{"other host", machine{host: "vm", own: linux()}, Holder{5, "elsewhere", rec()}, Judgement{Unknown, OtherHost}},
		{"other host without proc", machine{host: "vm", own: linux()}, Holder{5, "elsewhere", nil}, Judgement{Unknown, OtherHost}},
		{"host differs in case", machine{host: "vm", own: linux()}, Holder{5, "VM", nil}, Judgement{Unknown, OtherHost}},
		{"own host unknown", machine{own: linux()}, Holder{5, "vm", nil}, Judgement{Unknown, OtherHost}},
		{"other host and restarted", machine{host: "vm", own: linux(), local: true}, Holder{5, "elsewhere", rec(boot(bootB))}, Judgement{Unknown, OtherHost}},
		{"pid zero", machine{host: "vm", own: linux()}, Holder{0, "vm", nil}, Judgement{Unknown, ImpossiblePID}},
		{"pid minus one", machine{host: "vm", own: linux()}, Holder{-1, "vm", nil}, Judgement{Unknown, ImpossiblePID}},
		{"pid of a process group", machine{host: "vm", own: linux()}, Holder{-4000, "", rec()}, Judgement{Unknown, ImpossiblePID}},
		{"pid 2^31", machine{host: "vm", own: linux()}, Holder{1 << 31, "vm", rec()}, Judgement{Unknown, ImpossiblePID}},
		{"pid 2^32+5", machine{host: "vm", own: linux()}, Holder{1<<32 + 5, "vm", nil}, Judgement{Unknown, ImpossiblePID}},
		{"impossible pid and restarted", machine{host: "vm", own: linux(), local: true}, Holder{0, "vm", rec(boot(bootB))}, Judgement{Unknown, ImpossiblePID}},
		{"other pid namespace", machine{host: "vm", own: linux()}, Holder{1, "vm", rec(pidNS(otherNS))}, Judgement{Unknown, OtherPIDNamespace}},
		{"reader in a container", machine{host: "vm", own: container()}, Holder{1, "vm", rec()}, Judgement{Unknown, OtherPIDNamespace}},
		{"other pid namespace, host not named", machine{host: "vm", own: linux()}, Holder{1, "", rec(pidNS(otherNS))}, Judgement{Unknown, OtherPIDNamespace}},
		{"other pid namespace of another boot", machine{host: "vm", own: linux(), local: true}, Holder{1, "vm", rec(pidNS(otherNS), boot(bootB))}, Judgement{Unknown, OtherPIDNamespace}},
		{"other boot, not local", machine{host: "vm", own: linux()}, Holder{5, "vm", rec(boot(bootB))}, Judgement{Unknown, OtherBoot}},

		// The restart rule.
		{"restarted", machine{host: "vm", own: linux(), local: true}, Holder{5, "vm", rec(boot(bootB))}, Judgement{Dead, Restarted}},
		{"other boot, host not named", machine{host: "vm", own: linux(), local: true}, Holder{5, "", rec(boot(bootB))}, Judgement{Unknown, OtherBoot}},
		{"other boot, both nameless", machine{own: linux(), local: true}, Holder{5, "", rec(boot(bootB))}, Judgement{Unknown, OtherBoot}},
		{"other boot, same container inode", machine{host: "vm", own: container(), local: true}, Holder{5, "vm", rec(boot(bootB), pidNS(otherNS))}, Judgement{Unknown, OtherBoot}},
		{"other boot, initial not proven", machine{host: "vm", own: linuxWith(func(me *identity) { me.initial = false }), local: true}, Holder{5, "vm", rec(boot(bootB))}, Judgement{Unknown, OtherBoot}},
		{"other boot, record without pid_ns", machine{host: "vm", own: linux(), local: true}, Holder{5, "vm", rec(boot(bootB), pidNS(0))}, Judgement{Unknown, PIDNamespaceUnknown}},
		{"other boot, no namespaces here", machine{host: "vm", own: func() identity { m := windowsLike(); m.BootID = bootA; return m }(), local: true}, Holder{5, "vm", &ID{BootID: bootB}}, Judgement{Unknown, OtherBoot}},
		{"boot id cut short", machine{host: "vm", own: linux(), local: true}, Holder{5, "vm", rec(boot(bootB[:30]))}, Judgement{Unknown, OtherBoot}},
		{"boot id of capitals", machine{host: "vm", own: linux(), local: true}, Holder{5, "vm", rec(boot("0F8FAD5B-D9CB-469F-A165-70867728950E"))}, Judgement{Unknown, OtherBoot}},
		{"boot id without dashes", machine{host: "vm", own: linux(), local: true}, Holder{5, "vm", rec(boot("0f8fad5bad9cba469faa165a70867728950e"))}, Judgement{Unknown, OtherBoot}},

		// The probe.
		{"no such process", machine{host: "vm", own: linux(), answers: once(gone)}, Holder{5, "vm", rec()}, Judgement{Dead, NoSuchProcess}},
		{"no such process, largest pid", machine{host: "vm", own: linux(), answers: once(gone)}, Holder{1<<31 - 1, "vm", rec()}, Judgement{Dead, NoSuchProcess}},
		{"no such process, host not named", machine{host: "vm", own: linux(), answers: once(gone)}, Holder{5, "", rec()}, Judgement{Dead, NoSuchProcess}},
		{"no such process in one container", machine{host: "vm", own: container(), answers: once(gone)}, Holder{5, "vm", rec(pidNS(otherNS))}, Judgement{Dead, NoSuchProcess}},
		{"running", machine{host: "vm", own: linux(), answers: once(exists), seen: same}, Holder{5, "vm", rec()}, Judgement{Alive, Running}},
		{"denied", machine{host: "vm", own: linux(), answers: once(denied), seen: same}, Holder{5, "vm", rec()}, Judgement{Alive, Permission}},
		{"probe fails", machine{host: "vm", own: linux(), answers: once(noAnswer), seen: same}, Holder{5, "vm", rec()}, Judgement{Alive, ProbeFailed}},
		{"no probe on this system", machine{host: "vm", own: windowsLike(), answers: once(unsupported)}, Holder{5, "vm", &ID{}}, Judgement{Unknown, UnsupportedSystem}},

		// Not to be seen: only a second probe can say gone.
		{"hidden", machine{host: "vm", own: linux(), answers: once(exists, exists)}, Holder{5, "vm", rec()}, Judgement{Alive, Running}},
		{"hidden and denied", machine{host: "vm", own: linux(), answers: once(denied, denied)}, Holder{5, "vm", rec()}, Judgement{Alive, Permission}},
		{"ended between probe and look", machine{host: "vm", own: linux(), answers: once(exists, gone)}, Holder{5, "vm", rec()}, Judgement{Dead, NoSuchProcess}},
		{"hidden, second probe fails", machine{host: "vm", own: linux(), answers: once(exists, noAnswer)}, Holder{5, "vm", rec()}, Judgement{Alive, ProbeFailed}},

		// Zombies.
		{"zombie", machine{host: "vm", own: linux(), answers: once(exists), seen: zombie, alone: true}, Holder{5, "vm", rec()}, Judgement{Dead, Zombie}},
		{"zombie leader with other tasks", machine{host: "vm", own: linux(), answers: []answer{exists, exists}, seen: zombie}, Holder{5, "vm", rec()}, Judgement{Alive, Running}},
		{"zombie reaped meanwhile", machine{host: "vm", own: linux(), answers: []answer{exists, gone}, seen: zombie}, Holder{5, "vm", rec()}, Judgement{Dead, NoSuchProcess}},
		{"one task and no zombie", machine{host: "vm", own: linux(), answers: once(exists), seen: same, alone: true}, Holder{5, "vm", rec()}, Judgement{Alive, Running}},
		{"zombie of another user", machine{host: "vm", own: linux(), answers: once(denied), seen: zombie, alone: true}, Holder{5, "vm", rec()}, Judgement{Dead, Zombie}},
		{"zombie, no start_time recorded", machine{host: "vm", own: linux(), answers: once(exists), seen: zombie, alone: true}, Holder{5, "vm", rec(started(0))}, Judgement{Dead, Zombie}},
		{"zombie in another time namespace", machine{host: "vm", own: linux(), answers: once(exists), seen: zombie, alone: true}, Holder{5, "vm", rec(timeNS(timeB))}, Judgement{Dead, Zombie}},

		// Start times.
		{"reused", machine{host: "vm", own: linux(), answers: once(exists), seen: later}, Holder{5, "vm", rec()}, Judgement{Dead, PIDReused}},
		{"reused by another user's process", machine{host: "vm", own: linux(), answers: once(denied), seen: later}, Holder{5, "vm", rec()}, Judgement{Dead, PIDReused}},
		{"reused in one container", machine{host: "vm", own: container(), answers: once(exists), seen: later}, Holder{5, "vm", rec(pidNS(otherNS))}, Judgement{Dead, PIDReused}},
		{"reused, leader gone, threads run", machine{host: "vm", own: linux(), answers: once(exists), seen: &sighting{start: 200, zombie: true}}, Holder{5, "vm", rec()}, Judgement{Dead, PIDReused}},
		{"other time namespace", machine{host: "vm", own: linux(), answers: once(exists), seen: later}, Holder{5, "vm", rec(timeNS(timeB))}, Judgement{Alive, Running}},
		{"start time not shown", machine{host: "vm", own: linux(), answers: once(exists), seen: &sighting{}}, Holder{5, "vm", rec()}, Judgement{Alive, Running}},

		// Without proc: host name and probe, nothing else. A look would find proof here, and must not.
		{"four fields, gone", machine{host: "vm", own: linux(), answers: once(gone)}, Holder{5, "vm", nil}, Judgement{Dead, NoSuchProcess}},
		{"four fields, no host, gone", machine{host: "vm", own: container(), answers: once(gone)}, Holder{5, "", nil}, Judgement{Dead, NoSuchProcess}},
		{"four fields, running", machine{host: "vm", own: linux(), answers: once(exists), seen: later}, Holder{5, "vm", nil}, Judgement{Alive, Running}},
		{"four fields, denied", machine{host: "vm", own: linux(), answers: once(denied)}, Holder{5, "vm", nil}, Judgement{Alive, Permission}},
		{"four fields, probe fails", machine{host: "vm", own: linux(), answers: once(noAnswer)}, Holder{5, "vm", nil}, Judgement{Alive, ProbeFailed}},
		{"four fields, zombie", machine{host: "vm", own: linux(), answers: once(exists), seen: zombie, alone: true}, Holder{5, "vm", nil}, Judgement{Alive, Running}},
		{"four fields, reader without /proc", machine{host: "vm", own: noProc(), answers: once(gone)}, Holder{5, "vm", nil}, Judgement{Dead, NoSuchProcess}},
		{"four fields, no probe on this system", machine{host: "vm", answers: once(unsupported)}, Holder{5, "vm", nil}, Judgement{Unknown, UnsupportedSystem}},

		// Partial proc: pid_ns.
		{"no pid_ns, reader initial", machine{host: "vm", own: linux()}, Holder{5, "vm", rec(pidNS(0))}, Judgement{Unknown, PIDNamespaceUnknown}},
		{"no pid_ns, reader in a container", machine{host: "vm", own: container()}, Holder{5, "vm", rec(pidNS(0))}, Judgement{Unknown, PIDNamespaceUnknown}},
		{"empty proc", machine{host: "vm", own: linux()}, Holder{5, "vm", &ID{}}, Judgement{Unknown, PIDNamespaceUnknown}},
		{"empty proc, reader without /proc", machine{host: "vm", own: noProc()}, Holder{5, "vm", &ID{}}, Judgement{Unknown, PIDNamespaceUnknown}},
		{"whole proc, reader without /proc", machine{host: "vm", own: noProc()}, Holder{5, "vm", rec()}, Judgement{Unknown, PIDNamespaceUnknown}},
		{"Windows record, Linux guest", machine{host: "vm", own: linux()}, Holder{5, "vm", &ID{StartTime: 1 << 56}}, Judgement{Unknown, PIDNamespaceUnknown}},
		{"Linux record, Windows reader", machine{host: "vm", own: windowsLike()}, Holder{5, "vm", rec()}, Judgement{Unknown, PIDNamespaceUnknown}},
		{"no pid namespaces in this kernel", machine{host: "vm", own: oldKernel(), answers: once(gone)}, Holder{5, "vm", rec(pidNS(0), timeNS(0))}, Judgement{Dead, NoSuchProcess}},

		// Partial proc: boot_id.
		{"no boot_id, gone", machine{host: "vm", own: linux(), answers: once(gone)}, Holder{5, "vm", rec(boot(""))}, Judgement{Dead, NoSuchProcess}},
		{"no boot_id, start time differs", machine{host: "vm", own: linux(), answers: once(exists), seen: later}, Holder{5, "vm", rec(boot(""))}, Judgement{Alive, Running}},
		{"no boot_id on both sides, start time differs", machine{host: "vm", own: linuxWith(func(me *identity) { me.BootID = "" }), answers: once(exists), seen: later}, Holder{5, "vm", rec(boot(""))}, Judgement{Alive, Running}},
		{"no boot_id, zombie", machine{host: "vm", own: linux(), answers: once(exists), seen: zombie, alone: true}, Holder{5, "vm", rec(boot(""))}, Judgement{Dead, Zombie}},
		{"no boot_id, other pid namespace", machine{host: "vm", own: linux()}, Holder{5, "vm", rec(boot(""), pidNS(otherNS))}, Judgement{Unknown, OtherPIDNamespace}},
		{"own boot unknown", machine{host: "vm", own: linuxWith(func(me *identity) { me.BootID = "" }), local: true}, Holder{5, "vm", rec()}, Judgement{Unknown, BootUnknown}},

		// Partial proc: time_ns and start_time.
		{"no time_ns", machine{host: "vm", own: linux(), answers: once(exists), seen: later}, Holder{5, "vm", rec(timeNS(0))}, Judgement{Alive, Running}},
		{"own time namespace unknown", machine{host: "vm", own: linuxWith(func(me *identity) { me.TimeNS = 0 }), answers: once(exists), seen: later}, Holder{5, "vm", rec()}, Judgement{Alive, Running}},
		{"time namespace unknown on both sides", machine{host: "vm", own: linuxWith(func(me *identity) { me.TimeNS = 0 }), answers: once(exists), seen: later}, Holder{5, "vm", rec(timeNS(0))}, Judgement{Alive, Running}},
		{"no time namespaces in this kernel", machine{host: "vm", own: oldKernel(), answers: once(exists), seen: later}, Holder{5, "vm", rec(pidNS(0), timeNS(0))}, Judgement{Dead, PIDReused}},
		{"time_ns recorded, no time namespaces in this kernel", machine{host: "vm", own: oldKernel(), answers: once(exists), seen: later}, Holder{5, "vm", rec(pidNS(0))}, Judgement{Alive, Running}},
		{"no start_time", machine{host: "vm", own: linux(), answers: once(exists), seen: later}, Holder{5, "vm", rec(started(0))}, Judgement{Alive, Running}},
		{"only pid_ns", machine{host: "vm", own: linux(), answers: once(gone)}, Holder{5, "vm", &ID{PidNS: initialNS}}, Judgement{Dead, NoSuchProcess}},

		// A system without namespaces whose start times are dates.
		{"dates, running", machine{host: "pc", own: windowsLike(), answers: once(exists), seen: same}, Holder{5, "pc", &ID{StartTime: 100}}, Judgement{Alive, Running}},
		{"dates, reused", machine{host: "pc", own: windowsLike(), answers: once(exists), seen: later}, Holder{5, "pc", &ID{StartTime: 100}}, Judgement{Dead, PIDReused}},
		{"dates, gone", machine{host: "pc", own: windowsLike(), answers: once(gone)}, Holder{5, "pc", &ID{StartTime: 100}}, Judgement{Dead, NoSuchProcess}},
		{"dates, boot recorded", machine{host: "pc", own: windowsLike()}, Holder{5, "pc", &ID{StartTime: 100, BootID: bootA}}, Judgement{Unknown, BootUnknown}},
	}
	names := map[string]bool{}
	for _, tt := range tests {
		if names[tt.name] {
			t.Errorf("two rows named %q", tt.name)
		}
		names[tt.name] = true
		t.Run(tt.name, func(t *testing.T) {
			m := tt.m
			if got := m.judge(t, tt.h); got != tt.want {
				t.Errorf("got %v %s, want %v %s", got.Verdict, got.Reason, tt.want.Verdict, tt.want.Reason)
			}
			if tt.h.Proc == nil && m.looked > 0 {
				t.Error("looked at the process of a record without proc")
			}
			asks := tt.want.Reason == Restarted || tt.want.Reason == OtherBoot
			if m.askedLocal > 0 && !asks {
				t.Error("asked about the filesystem outside the restart rule")
			}
		})
	}
}

// Nothing that is taken away from the evidence may turn another verdict into Dead, except that a record
// without boot_id or without the whole proc falls back to what the specification says.
func TestMissingEvidenceNeverLeadsToDead(t *testing.T) {
	readers := []identity{linux(), container(), oldKernel(), windowsLike(), noProc()}
	sightings := []*sighting{{start: 100}, {start: 200}, {start: 100, zombie: true}}
	answers := []answer{exists, denied, noAnswer, gone}
	drops := map[string]func(*ID, *machine){
		"rec pid_ns":     func(r *ID, _ *machine) { r.PidNS = 0 },
		"rec time_ns":    func(r *ID, _ *machine) { r.TimeNS = 0 },
		"rec start_time": func(r *ID, _ *machine) { r.StartTime = 0 },
		"own boot_id":    func(_ *ID, m *machine) { m.own.BootID = "" },
		"own pid_ns":     func(_ *ID, m *machine) { m.own.PidNS, m.own.initial = 0, false },
		"own time_ns":    func(_ *ID, m *machine) { m.own.TimeNS = 0 },
		"sighting":       func(_ *ID, m *machine) { m.seen = nil },
		"alone":          func(_ *ID, m *machine) { m.alone = false },
		"local":          func(_ *ID, m *machine) { m.local = false },
		"own host":       func(_ *ID, m *machine) { m.host = "" },
	}
	judge := func(m machine, a answer, r ID) Judgement {
		f := facts{
			hostName: func() string { return m.host },
			own:      func() identity { return m.own },
			probe:    func(int) answer { return a },
			look: func(int) (sighting, bool) {
				if m.seen == nil {
					return sighting{}, false
				}
				return *m.seen, true
			},
			alone: func(int) bool { return m.alone },
			local: func(string) bool { return m.local },
		}
		return f.judge(Holder{PID: 5, Host: "vm", Proc: &r}, "near")
	}
	// A kernel that has namespaces of a kind never hides that; so what has none drops none.
	dead := 0
	for _, me := range readers {
		for _, base := range []*ID{rec(), rec(pidNS(otherNS)), rec(boot(bootB)), rec(timeNS(timeB)), rec(pidNS(0), timeNS(0)), {StartTime: 100}} {
			for _, seen := range sightings {
				for _, a := range answers {
					m := machine{host: "vm", own: me, seen: seen, alone: true, local: true}
					whole := judge(m, a, *base)
					if whole.Verdict == Dead {
						dead++
						continue
					}
					for name, drop := range drops {
						if me.onePIDSpace && (name == "rec pid_ns" || name == "rec time_ns") {
							continue
						}
						r, less := *base, m
						drop(&r, &less)
						if got := judge(less, a, r); got.Verdict == Dead {
							t.Errorf("reader %+v, record %+v, seen %+v, answer %d: %v; without %s: dead, %s",
								me, *base, *seen, a, whole, name, got.Reason)
						}
					}
				}
			}
		}
	}
	if dead == 0 {
		t.Error("no combination was dead: the table was not exercised")
	}
}

func TestVerdictsAndReasonsKeepTheirWords(t *testing.T) {
	if s := Unknown.String() + Alive.String() + Dead.String() + Verdict(9).String(); s != "unknownalivedeadunknown" {
		t.Errorf("verdicts spell %q", s)
	}
	if (Judgement{}).Verdict != Unknown {
		t.Error("the zero judgement is not unknown")
	}
	want := map[Reason]string{
		OtherHost: "other_host", ImpossiblePID: "impossible_pid", OtherPIDNamespace: "other_pid_namespace",
		PIDNamespaceUnknown: "pid_namespace_unknown", OtherBoot: "other_boot", BootUnknown: "boot_unknown",
		UnsupportedSystem: "unsupported_system", NoSuchProcess: "no_such_process", Zombie: "zombie",
		PIDReused: "pid_reused", Restarted: "restarted", Running: "running", Permission: "permission",
		ProbeFailed: "probe_failed",
	}
	for r, s := range want {
		if string(r) != s {
			t.Errorf("reason %q, want %q", r, s)
		}
	}
}

func TestRecordedFormOfID(t *testing.T) {
	b, err := json.Marshal(rec())
	if err != nil {
		t.Fatal(err)
	}
	want := `{"boot_id":"` + bootA + `","pid_ns":4026531836,"time_ns":4026531834,"start_time":100}`
	if string(b) != want {
		t.Errorf("got %s, want %s", b, want)
	}
	if b, _ := json.Marshal(ID{}); string(b) != "{}" {
		t.Errorf("an empty ID is %s", b)
	}
}

func TestHostTagsKeepPlacesApart(t *testing.T) {
	// sha256 of "vm", computed elsewhere: every implementation of the names must give it.
	if got := HostTagFor("vm", nil); got != "5bce98f7" {
		t.Errorf("tag of vm is %s", got)
	}
	seen := map[string]string{}
	for name, tag := range map[string]string{
		"plain":          HostTagFor("vm", nil),
		"other host":     HostTagFor("vm2", nil),
		"container":      HostTagFor("vm", &ID{PidNS: otherNS, BootID: bootA}),
		"next container": HostTagFor("vm", &ID{PidNS: otherNS + 1, BootID: bootA}),
		"other boot":     HostTagFor("vm", &ID{PidNS: otherNS, BootID: bootB}),
		"host like it":   HostTagFor("vm4", &ID{PidNS: otherNS, BootID: bootA}),
	} {
		if len(tag) != 8 {
			t.Errorf("%s: tag %q", name, tag)
		}
		if other, ok := seen[tag]; ok {
			t.Errorf("%s and %s share tag %s", name, other, tag)
		}
		seen[tag] = name
	}
	if HostTagFor("vm", &ID{PidNS: 12}) == HostTagFor("vm1", &ID{PidNS: 2}) {
		t.Error("host name and namespace run together")
	}
	// A process has the same tag throughout its pid namespace and boot, whenever it began.
	a, b := HostTagFor("vm", &ID{PidNS: otherNS, BootID: bootA}), HostTagFor("vm", &ID{PidNS: otherNS, BootID: bootA, StartTime: 9, TimeNS: timeB})
	if a != b {
		t.Error("start time or time namespace changes the tag")
	}
}

func TestSelfIsNotSharedBetweenCallers(t *testing.T) {
	a := Self()
	if a.PID != int64(os.Getpid()) || a.Proc == nil {
		t.Fatalf("self is %+v", a)
	}
	was := *a.Proc
	a.Proc.BootID, a.Proc.StartTime = "spoiled", 1
	if b := Self(); *b.Proc != was {
		t.Errorf("a caller's change came back: %+v", *b.Proc)
	}
}
