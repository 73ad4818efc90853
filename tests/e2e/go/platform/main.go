// The real Go client and P-Chain wallet with a node of ours as theirs.
// Usage: platform <base url>
// Prints one JSON object; any failure ends with a non-zero exit code.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"time"

	"github.com/ava-labs/avalanchego/api/info"
	"github.com/ava-labs/avalanchego/genesis"
	"github.com/ava-labs/avalanchego/ids"
	"github.com/ava-labs/avalanchego/utils/constants"
	"github.com/ava-labs/avalanchego/utils/units"
	"github.com/ava-labs/avalanchego/vms/components/avax"
	"github.com/ava-labs/avalanchego/vms/platformvm"
	"github.com/ava-labs/avalanchego/vms/platformvm/txs"
	"github.com/ava-labs/avalanchego/vms/secp256k1fx"
	"github.com/ava-labs/avalanchego/wallet/subnet/primary"
)

const stakeSeconds = 60

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func main() {
	ctx, uri := context.Background(), os.Args[1]
	keychain := secp256k1fx.NewKeychain(genesis.EWOQKey)
	client := platformvm.NewClient(uri)
	xChain := must(info.NewClient(uri).GetBlockchainID(ctx, "X"))

	wallet := must(primary.MakePWallet(ctx, uri, keychain, primary.WalletConfig{}))
	avaxID := wallet.Builder().Context().AVAXAssetID
	owner := &secp256k1fx.OutputOwners{Threshold: 1, Addrs: []ids.ShortID{genesis.EWOQKey.Address()}}
	paid := []*avax.TransferableOutput{{
		Asset: avax.Asset{ID: avaxID},
		Out:   &secp256k1fx.TransferOutput{Amt: units.Avax, OutputOwners: *owner},
	}}
	nodeID := must(client.GetCurrentValidators(ctx, constants.PrimaryNetworkID, nil))[0].NodeID

	issued := map[string]*txs.Tx{
		"base":     must(wallet.IssueBaseTx(paid)),
		"exported": must(wallet.IssueExportTx(xChain, paid)),
		"subnet":   must(wallet.IssueCreateSubnetTx(owner)),
	}
	subnetID := issued["subnet"].ID()
	issued["chain"] = must(wallet.IssueCreateChainTx(subnetID, []byte("{}"), ids.ID{1}, nil, "made by Go"))
	issued["delegation"] = must(wallet.IssueAddPermissionlessDelegatorTx(
		&txs.SubnetValidator{
			Validator: txs.Validator{
				NodeID: nodeID,
				End:    uint64(time.Now().Unix()) + stakeSeconds,
				Wght:   25 * units.Avax,
			},
			Subnet: constants.PrimaryNetworkID,
		},
		avaxID,
		owner,
	))

	names, statuses := map[string]string{}, map[string]string{}
	for name, tx := range issued {
		names[name] = tx.ID().String()
		statuses[name] = must(client.GetTxStatus(ctx, tx.ID())).Status.String()
		if parsed := must(txs.Parse(txs.Codec, must(client.GetTx(ctx, tx.ID())))); parsed.ID() != tx.ID() {
			log.Fatalf("%s is another transaction: %s", name, parsed.ID())
		}
	}
	height := must(client.GetHeight(ctx))
	must(client.GetBlockByHeight(ctx, height))
	subnet := must(client.GetSubnet(ctx, subnetID))
	supply, _, err := client.GetCurrentSupply(ctx, constants.PrimaryNetworkID)
	if err != nil {
		log.Fatal(err)
	}
	_, price, _, err := client.GetFeeState(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(map[string]any{
		"issued":     names,
		"statuses":   statuses,
		"height":     height,
		"supply":     supply,
		"price":      price,
		"keys":       len(subnet.ControlKeys),
		"validators": len(must(client.GetCurrentValidators(ctx, constants.PrimaryNetworkID, nil))),
		"set":        len(must(client.GetValidatorsAt(ctx, constants.PrimaryNetworkID, 1))),
		"chains":     len(must(client.Validates(ctx, subnetID))),
		"balance":    uint64(must(client.GetBalance(ctx, owner.Addrs)).Balance),
	}); err != nil {
		log.Fatal(err)
	}
}
