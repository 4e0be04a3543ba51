package s3api

import (
	"maps"
	"slices"
)

// Operations returns the operations of buckets and of objects, as "bucket GET acl", in order.
func Operations() []string {
	var names []string
	for kind, operations := range map[string]map[string]operation{"service": serviceOperations, "bucket": bucketOperations, "object": objectOperations} {
		for name := range maps.Keys(operations) {
			names = append(names, kind+" "+name)
		}
	}
	return slices.Sorted(slices.Values(names))
}
