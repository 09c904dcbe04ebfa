package proc

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"sync"
	"sync/atomic"
)

// HostTag is the <host> part of the names this process makes beside a lock: 8 hex digits. Names with
// another tag belong to processes whose pids cannot be checked from here, and are left alone.
//
// In the initial pid namespace it is taken from the host name alone, so that every implementation
// gives the same. Outside it the pid namespace and the boot count too, so that neighbours with one host
// name never judge each other's pids. A process that cannot tell where it is gets a tag of its own,
// drawn at random: nobody sweeps what it leaves, and it sweeps nobody.
func HostTag() string {
	host := hostName()
	if t := lastTag.Load(); t != nil && t.host == host {
		return t.tag
	}
	me := own()
	var tag string
	switch {
	case me.initial:
		tag = HostTagFor(host, nil)
	case me.PidNS == 0 && !me.onePIDSpace:
		tag = tagOf(host + "\x00" + lostNonce())
	default:
		tag = HostTagFor(host, &me.ID)
	}
	lastTag.Store(&hostTag{host, tag})
	return tag
}

// HostTagFor is the tag of processes on the named host: in its initial pid namespace when id is nil,
// else in the pid namespace and boot that id names.
func HostTagFor(host string, id *ID) string {
	if id == nil {
		return tagOf(host)
	}
	// No host name and no boot id holds a NUL, so no two places share an input.
	return tagOf(host + "\x00" + strconv.FormatUint(id.PidNS, 10) + "\x00" + id.BootID)
}

func tagOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:4])
}

type hostTag struct{ host, tag string }

// lastTag remembers one tag with the host name it was made for, since that name can change.
var lastTag atomic.Pointer[hostTag]

var lostNonce = sync.OnceValue(rand.Text)
