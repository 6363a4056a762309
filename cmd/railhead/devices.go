package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"railhead/internal/inventory"
)

func devicesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "devices",
		Short: "List the RDMA devices of this node, and what could be one",
		Long: `List the RDMA devices of this node: physical and virtual functions, subfunctions,
bonded and dual-port cards and software RDMA, also those that were moved into a
pod, and cards whose RDMA driver is missing. It reads and changes nothing; as
root it sees into other network namespaces too.`,
		Args: cobra.NoArgs,
	}
	source := addSourceFlags(cmd)
	output := addFormatFlag(cmd, formatText, formatWide, formatJSON, formatYAML)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		n, err := source.look()
		if err != nil {
			return err
		}
		for _, p := range n.Inventory.Problems {
			fmt.Fprintf(cmd.ErrOrStderr(), "railhead: %s\n", printable(p))
		}
		if err := printDevices(cmd.OutOrStdout(), output.value, n.Inventory); err != nil {
			return err
		}
		if len(n.Inventory.Devices) == 0 && len(n.Inventory.Problems) > 0 {
			return exitCode(exitFailed) // there may be some that could not be read
		}
		return nil
	}
	return cmd
}

func printDevices(w io.Writer, f format, s *inventory.Snapshot) error {
	if f == formatJSON || f == formatYAML {
		return printData(w, f, s)
	}
	if len(s.Devices) == 0 {
		_, err := fmt.Fprintln(w, "no RDMA devices; railhead check says why")
		return err
	}
	columns := devicesTable
	if f == formatText {
		columns = narrow(columns)
	}
	return printTable(w, columns, deviceRows(s))
}

// deviceRow is a line of the table: a port of a device, or a device without
// RDMA. Ports that stand on an eswitch for other functions have none.
type deviceRow struct {
	device *inventory.Device
	port   *inventory.Port // nil without RDMA
	netdev *inventory.Netdev
}

func deviceRows(s *inventory.Snapshot) []deviceRow {
	var rows []deviceRow
	for i := range s.Devices {
		rows = append(rows, rowsOf(&s.Devices[i])...)
	}
	return rows
}

func rowsOf(d *inventory.Device) []deviceRow {
	var rows []deviceRow
	if d.RDMA != nil {
		for k := range d.RDMA.Ports {
			if !d.RDMA.Ports[k].Representor {
				rows = append(rows, portRow(d, &d.RDMA.Ports[k]))
			}
		}
	}
	if len(rows) > 0 {
		return rows
	}
	row := deviceRow{device: d}
	if len(d.Netdevs) > 0 {
		row.netdev = &d.Netdevs[0]
	}
	return []deviceRow{row}
}

func portRow(d *inventory.Device, p *inventory.Port) deviceRow {
	row := deviceRow{device: d, port: p}
	for i := range d.Netdevs {
		if d.Netdevs[i].Name == p.Netdev {
			row.netdev = &d.Netdevs[i]
		}
	}
	return row
}

// ofPort, ofPCI and ofRDMA make cells that are empty for devices without.
func ofPort(cell func(*inventory.Port) string) func(deviceRow) string {
	return func(r deviceRow) string {
		if r.port == nil {
			return ""
		}
		return cell(r.port)
	}
}

func ofPCI(cell func(*inventory.PCI) string) func(deviceRow) string {
	return func(r deviceRow) string {
		if r.device.PCI == nil {
			return ""
		}
		return cell(r.device.PCI)
	}
}

func ofRDMA(cell func(*inventory.RDMA) string) func(deviceRow) string {
	return func(r deviceRow) string {
		if r.device.RDMA == nil {
			return ""
		}
		return cell(r.device.RDMA)
	}
}

func railCell(r deviceRow) string {
	if r.device.Rail == nil {
		return ""
	}
	return strconv.Itoa(*r.device.Rail)
}

// kindCell tells a VF or SF with its number.
func kindCell(r deviceRow) string {
	switch d := r.device; {
	case d.VF != nil:
		return fmt.Sprintf("VF %d", *d.VF)
	case d.SF != nil:
		return fmt.Sprintf("SF %d", *d.SF)
	default:
		return string(d.Kind)
	}
}

func rdmaCell(r deviceRow) string {
	switch {
	case r.device.CarriedBy != "":
		return "(" + r.device.CarriedBy + ")"
	case r.device.RDMA == nil:
		return ""
	case r.port != nil && len(r.device.RDMA.Ports) > 1:
		return fmt.Sprintf("%s/%d", r.device.RDMA.Name, r.port.Number)
	default:
		return r.device.RDMA.Name
	}
}

// speed tells the speed, and what it could be where it is less.
func speed(p *inventory.Port) string {
	switch {
	case p.Gigabits == 0:
		return ""
	case p.Gigabits < p.MaxGigabits:
		return fmt.Sprintf("%g of %gG", p.Gigabits, p.MaxGigabits)
	default:
		return fmt.Sprintf("%gG", p.Gigabits)
	}
}

func gids(p *inventory.Port) string {
	if p.GIDTableLen == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d", len(p.GIDs), p.GIDTableLen)
}

func numaNode(p *inventory.PCI) string {
	if p.NUMANode == nil {
		return ""
	}
	return strconv.Itoa(*p.NUMANode)
}

func pcieLink(p *inventory.PCI) string {
	if p.Link.Lanes == 0 {
		return ""
	}
	return fmt.Sprintf("%gGT/s x%d", p.Link.GigaTransfers, p.Link.Lanes)
}

func vfsCell(r deviceRow) string {
	if r.device.SRIOV == nil {
		return ""
	}
	return fmt.Sprintf("%d of %d", r.device.SRIOV.NumVFs, r.device.SRIOV.TotalVFs)
}

func mtuCell(r deviceRow) string {
	switch {
	case r.netdev != nil && r.netdev.MTU > 0:
		return strconv.Itoa(r.netdev.MTU)
	case r.port != nil && r.port.MTU > 0:
		return strconv.Itoa(r.port.MTU)
	}
	return ""
}

func netdevCell(r deviceRow) string {
	if r.port != nil && r.port.Netdev != "" {
		return r.port.Netdev
	}
	if r.netdev != nil {
		return r.netdev.Name
	}
	return ""
}

func addressesCell(r deviceRow) string {
	if r.netdev == nil {
		return ""
	}
	var addrs []string
	for _, a := range r.netdev.Addresses {
		if !a.Addr().IsLinkLocalUnicast() {
			addrs = append(addrs, a.String())
		}
	}
	return strings.Join(addrs, ",")
}

// gpuCell names the GPUs at the smallest distance, if that is below a switch
// or a host bridge.
func gpuCell(r deviceRow) string {
	var near []string
	for _, a := range r.device.GPUs {
		if a.Distance != r.device.GPUs[0].Distance || a.Distance == inventory.NODE || a.Distance == inventory.SYS {
			break
		}
		near = append(near, a.GPU)
	}
	if len(near) == 0 {
		return ""
	}
	return strings.Join(near, ",") + " " + string(r.device.GPUs[0].Distance)
}

func charDevicesCell(r deviceRow) string {
	if r.device.RDMA == nil {
		return ""
	}
	var names []string
	for _, c := range r.device.RDMA.CharDevices {
		if r.port == nil || c.Port == 0 || c.Port == r.port.Number {
			names = append(names, c.Name)
		}
	}
	return strings.Join(names, ",")
}

// whereCell names the network namespace of what was moved.
func whereCell(r deviceRow) string {
	switch {
	case r.device.RDMA != nil && r.device.RDMA.NetNS != nil:
		return r.device.RDMA.NetNS.Name()
	case r.netdev != nil && r.netdev.NetNS != nil:
		return r.netdev.NetNS.Name()
	}
	return ""
}
