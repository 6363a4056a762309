package registration

// Resources of our group, by what webhooks they need.
var (
	objectsWithDefaults = []string{"spiderippools", "spidersubnets", "spiderreservedips", "spidercoordinators", "spidermultusconfigs"}
	objectsInUse        = []string{"spiderippools", "spidersubnets"} // by what was made of them: see policy.Catalog.ReviewDelete
)
