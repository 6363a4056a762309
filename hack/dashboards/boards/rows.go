package boards

// both makes the panels of the two directions. A reader of these dashboards
// knows receiving as "read" and transmitting as "write".
func both(title, by string, panel func(verb, direction string) Panel) []Panel {
	read, write := panel("Read", "receive"), panel("Write", "transmit")
	read.Title, write.Title = "Read "+title+by, "Write "+title+by
	return []Panel{read, write}
}

// join puts lists of panels behind each other.
func join(lists ...[]Panel) []Panel {
	var all []Panel
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}
