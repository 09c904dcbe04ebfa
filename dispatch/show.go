package dispatch

import "errors"

// Board gives the items of an agent's board, in its order; none when there is no board. It changes nothing.
// A board that is not what it should be is a *FileError.
func (e *Estate) Board(agent string) (list []Item, err error) {
	a, err := e.agent(agent, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	b, err := a.openBoard()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	items, err := b.items()
	if err != nil {
		return nil, err
	}
	list = make([]Item, len(items))
	for i := range items {
		list[i] = items[i].Item
	}
	return list, nil
}
