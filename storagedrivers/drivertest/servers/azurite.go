package servers

import (
	"net"
	"os/exec"
	"testing"
)

// Credentials of Azurite.
const (
	AzuriteAccount = "devstoreaccount1"
	// AzuriteKey is public: every emulator has it.
	AzuriteKey = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// Azure is a blob service with one account.
type Azure struct {
	*Process
	// Endpoint is the address of the account's blob service.
	Endpoint string
}

// Azurite starts an emulator that stores everything in memory and has no container yet.
func Azurite(t testing.TB) *Azure {
	t.Helper()
	program := Program(t, "azurite-blob")
	address := FreeAddress(t)
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	folder := Folder(t)
	process := Start(t, address, func() *exec.Cmd {
		// The emulator is older than the libraries and would refuse their API version.
		cmd := exec.Command(program, "--blobHost", host, "--blobPort", port, "--skipApiVersionCheck",
			"--inMemoryPersistence", "--silent", "--disableTelemetry")
		cmd.Dir = folder
		return cmd
	})
	return &Azure{Process: process, Endpoint: "http://" + address + "/" + AzuriteAccount}
}
