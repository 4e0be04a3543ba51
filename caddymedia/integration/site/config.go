package site

// AtRoot is the begin of a storage "default" that keeps items at the root of $ROOT. The block is
// open.
const AtRoot = "storage default {\ndriver local $ROOT\nsub_folder_format /\n"

// TokenPath is the path of the token endpoint.
const TokenPath = "/api/auth/generateToken"

// OnBolt is a configuration whose tokens survive a restart.
const OnBolt = Account + Binaries

// ChangedHash is the hash of the password "changed", made like CheapHash.
const ChangedHash = "$argon2id$v=19$m=64,t=1,p=1$RRW6iPHAV0pUhBupioU0wg$nSlkjWe/vXNGMKoe8hJrYFksvUnRsayfcYpWq352gic"

// Binaries are aliases for files ending in bin: content keeps existing items, over replaces
// them.
const Binaries = `
storage keep {
	driver local $ROOT/keep
}
storage replace {
	driver local $ROOT/replace
	overwrite_strategy overwrite
}
file_alias content {
	storage keep
	prefix /
	extensions bin
}
file_alias over {
	storage replace
	prefix /
	extensions bin
}
`

// InMemory is a configuration whose tokens end with the process.
const InMemory = "tokens memory\n" + Account + Binaries
