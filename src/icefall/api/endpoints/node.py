"""The rows of the node interfaces: health, admin, info, the asset chain, the platform chain and the index."""

from icefall.api.endpoints.row import Rest, Rpc
from icefall.api.handlers import admin, avm, health, index, info, platform
from icefall.api.schema import admin as a
from icefall.api.schema import avm as v
from icefall.api.schema import health as h
from icefall.api.schema import index as n
from icefall.api.schema import info as i
from icefall.api.schema import platform as pl
from icefall.api.schema.names import Empty

ADMIN, HEALTH, INFO = "/ext/admin", "/ext/health", "/ext/info"
# Each of these is served under more names than this one: `Mount` in api/assemble.py.
X, P, INDEX = "/ext/bc/X", "/ext/bc/P", "/ext/index/X/block"
ADMIN_ON, HEALTH_ON, INDEX_ON = "api-admin-enabled", "api-health-enabled", "index-enabled"
INFO_ON = "api-info-enabled"

# fmt: off
NODE_ENDPOINTS: tuple[Rest | Rpc, ...] = (
    # -- health ------------------------------------------------------------------------------------------------
    Rest(verb="GET", path="/ext/health", params=h.TagQuery, result=h.HealthReport, handler=health.get_health,
         status=health.verdict, needs=HEALTH_ON,
         summary="Last results of all checks, or of those with a `tag` and the global ones; 503 when one fails."),
    Rest(verb="*", path="/ext/health/health", params=h.TagQuery, result=h.HealthReport, handler=health.get_health,
         status=health.verdict, needs=HEALTH_ON,
         summary="The same as `/ext/health`."),
    Rest(verb="*", path="/ext/health/readiness", params=h.TagQuery, result=h.HealthReport, handler=health.get_readiness,
         status=health.verdict, needs=HEALTH_ON,
         summary="Healthy once the node has finished starting, and from then on."),
    Rest(verb="*", path="/ext/health/liveness", result=h.HealthReport, handler=health.get_liveness,
         status=health.verdict, needs=HEALTH_ON,
         summary="Healthy as soon as the server answers."),
    Rpc(path=HEALTH, method="health.health", params=h.TagsParams, result=h.HealthReport, handler=health.health,
        needs=HEALTH_ON, summary="Last results of all checks, or of those with one of `tags` and the global ones."),
    Rpc(path=HEALTH, method="health.readiness", params=h.TagsParams, result=h.HealthReport, handler=health.readiness,
        needs=HEALTH_ON, summary="Last evaluation of the startup checks."),
    Rpc(path=HEALTH, method="health.liveness", params=h.TagsParams, result=h.HealthReport, handler=health.liveness,
        needs=HEALTH_ON, summary="Empty checks and `healthy` true."),

    # -- admin -------------------------------------------------------------------------------------------------
    Rpc(path=ADMIN, method="admin.alias", params=a.AliasEndpointParams, result=Empty, handler=admin.alias,
        needs=ADMIN_ON, summary="Give `/ext/<endpoint>` a second name `/ext/<alias>` (at most 512 bytes)."),
    Rpc(path=ADMIN, method="admin.aliasChain", params=a.AliasChainParams, result=Empty, handler=admin.alias_chain,
        needs=ADMIN_ON, summary="Give a chain a name that works wherever its ID does."),
    Rpc(path=ADMIN, method="admin.getChainAliases", params=a.ChainAliasesParams, result=a.ChainAliases, needs=ADMIN_ON,
        handler=admin.get_chain_aliases, summary="All names of the chain with this ID."),
    Rpc(path=ADMIN, method="admin.getLoggerLevel", params=a.LoggerParams, result=a.LoggerLevels, needs=ADMIN_ON,
        handler=admin.get_logger_level, summary="Levels of one logger, or of all."),
    Rpc(path=ADMIN, method="admin.setLoggerLevel", params=a.SetLevelParams, result=Empty | a.LoggerLevels,
        needs=ADMIN_ON, handler=admin.set_logger_level,
        summary="Change what a logger (or all) writes and displays, in every process, also after a restart."),
    Rpc(path=ADMIN, method="admin.loadVMs", result=a.LoadedVms, handler=admin.load_vms, needs=ADMIN_ON,
        summary="Load VM plugins that were installed since the start."),
    Rpc(path=ADMIN, method="admin.startCPUProfiler", result=Empty, handler=admin.start_cpu_profiler, needs=ADMIN_ON,
        summary="Start a CPU profile of the engine."),
    Rpc(path=ADMIN, method="admin.stopCPUProfiler", result=Empty, handler=admin.stop_cpu_profiler, needs=ADMIN_ON,
        summary="Stop it and write `cpu.profile` (pprof format)."),
    Rpc(path=ADMIN, method="admin.memoryProfile", result=Empty, handler=admin.memory_profile, needs=ADMIN_ON,
        summary="Write `mem.profile` of the engine (pprof format)."),
    Rpc(path=ADMIN, method="admin.lockProfile", result=Empty, handler=admin.lock_profile, needs=ADMIN_ON,
        summary="Write `lock.profile`, the engine's waits for locks (pprof format)."),

    # -- info --------------------------------------------------------------------------------------------------
    Rpc(path=INFO, method="info.getNetworkID", result=i.NetworkId, handler=info.get_network_id, needs=INFO_ON,
        summary="Number of the network."),
    Rpc(path=INFO, method="info.getNetworkName", result=i.NetworkName, handler=info.get_network_name, needs=INFO_ON,
        summary="Name of the network."),
    Rpc(path=INFO, method="info.getBlockchainID", params=i.BlockchainAliasParams, result=i.BlockchainId, needs=INFO_ON,
        handler=info.get_blockchain_id, summary="ID of the chain with this alias."),
    Rpc(path=INFO, method="info.getNodeID", result=i.NodeId, handler=info.get_node_id, needs=INFO_ON,
        summary="ID of this node, from its TLS certificate."),
    Rpc(path=INFO, method="info.getNodeVersion", result=i.NodeVersion, handler=info.get_node_version, needs=INFO_ON,
        summary="Version of this program and of the interfaces it implements."),
    Rpc(path=INFO, method="info.getNodeIP", result=i.NodeIp, handler=info.get_node_ip, needs=INFO_ON,
        summary="Address this node listens on."),
    Rpc(path=INFO, method="info.isBootstrapped", params=i.BootstrappedParams, result=i.Bootstrapped, needs=INFO_ON,
        handler=info.is_bootstrapped, summary="Whether a chain has caught up and answers calls."),
    Rpc(path=INFO, method="info.peers", params=i.PeersParams, result=i.Peers, handler=info.peers, needs=INFO_ON,
        summary="Peers of this node."),
    Rpc(path=INFO, method="info.getVMs", result=i.Vms, handler=info.get_vms, needs=INFO_ON,
        summary="VMs and feature extensions of this node."),
    Rpc(path=INFO, method="info.getTxFee", result=i.Fees, handler=info.get_tx_fee, needs=INFO_ON,
        deprecated="use avm.getTxFee and platform.getFeeConfig", summary="Fees of the network."),
    Rpc(path=INFO, method="info.upgrades", result=i.Upgrades, handler=info.upgrades, needs=INFO_ON,
        summary="When each network upgrade takes effect."),
    Rpc(path=INFO, method="info.uptime", result=i.Uptime, handler=info.uptime, needs=INFO_ON,
        summary="Uptime of this node as its peers see it."),
    Rpc(path=INFO, method="info.acps", result=i.Acps, handler=info.acps, needs=INFO_ON,
        summary="Stake for and against each community proposal."),

    # -- the asset chain and the platform chain ----------------------------------------------------------------
    Rpc(path=X, method="avm.getAllBalances", params=v.AddressParams, result=v.AllBalances, handler=avm.get_all_balances,
        deprecated="since node version 1.9.12; use avm.getUTXOs",
        summary="Balances of an address in every asset it holds."),
    Rpc(path=X, method="avm.getAssetDescription", params=v.AssetParams, result=v.AssetDescription,
        handler=avm.get_asset_description,
        summary="Name, symbol and denomination of an asset, by ID or genesis alias."),
    Rpc(path=X, method="avm.getBalance", params=v.BalanceParams, result=v.Balance, handler=avm.get_balance,
        deprecated="since node version 1.9.12; use avm.getUTXOs", summary="Balance of an address in one asset."),
    Rpc(path=X, method="avm.getBlock", params=v.GetBlockParams, result=v.GetBlockResult, handler=avm.get_block,
        summary="A block by its ID, or by the ID of its container."),
    Rpc(path=X, method="avm.getBlockByHeight", params=v.BlockByHeightParams, result=v.GetBlockResult,
        handler=avm.get_block_by_height, summary="A block by its height."),
    Rpc(path=X, method="avm.getHeight", result=v.Height, handler=avm.get_height,
        summary="Height of the last accepted block."),
    Rpc(path=X, method="avm.getTx", params=v.GetTxParams, result=v.GetTxResult, handler=avm.get_tx,
        summary="An accepted transaction."),
    Rpc(path=X, method="avm.getTxFee", result=v.TxFees, handler=avm.get_tx_fee,
        summary="Fees of a transaction and of creating an asset."),
    Rpc(path=X, method="avm.getTxStatus", params=v.TxStatusParams, result=v.TxStatus, handler=avm.get_tx_status,
        deprecated="since node version 1.10.0; use avm.getTx", summary="Accepted, Processing, Rejected or Unknown."),
    Rpc(path=X, method="avm.getUTXOs", params=v.UtxosParams, result=v.Utxos, handler=avm.get_utxos,
        summary="Unspent outputs that reference any of the addresses, newest first; pages of at most 1024."),
    Rpc(path=X, method="avm.issueTx", params=v.IssueTxParams, result=v.Issued, handler=avm.issue_tx,
        summary="Verify a signed transaction and put it into the next block."),
    Rpc(path=X, method="avm.getAddressTxs", params=v.AddressTxsParams, result=v.AddressTxs, handler=avm.get_address_txs,
        summary="Transactions that created or spent outputs of an address, newest first, of all assets or one."),
    Rpc(path=P, method="platform.getFeeConfig", result=pl.FeeConfig, handler=platform.get_fee_config,
        summary="Fee parameters of the platform chain; clients read them before they build a transaction."),

    # -- the index of accepted containers ----------------------------------------------------------------------
    Rpc(path=INDEX, method="index.getContainerByID", params=n.ContainerByIdParams, result=n.IndexContainer,
        needs=INDEX_ON, handler=index.get_container_by_id, summary="A container by its ID."),
    Rpc(path=INDEX, method="index.getContainerByIndex", params=n.ContainerByIndexParams, result=n.IndexContainer,
        needs=INDEX_ON, handler=index.get_container_by_index, summary="A container by its number."),
    Rpc(path=INDEX, method="index.getContainerRange", params=n.ContainerRangeParams, needs=INDEX_ON,
        result=list[n.IndexContainer] | n.Containers | None, handler=index.get_container_range,
        summary="Up to 1024 containers from a number on; fewer at the end, null for none."),
    Rpc(path=INDEX, method="index.getIndex", params=n.ContainerIdParams, result=n.IndexNumber, needs=INDEX_ON,
        handler=index.get_index, summary="The number of a container."),
    Rpc(path=INDEX, method="index.getLastAccepted", params=n.EncodingParams, result=n.IndexContainer, needs=INDEX_ON,
        handler=index.get_last_accepted, summary="The container accepted last."),
    Rpc(path=INDEX, method="index.isAccepted", params=n.ContainerIdParams, result=n.IsAccepted, needs=INDEX_ON,
        handler=index.is_accepted, summary="Whether a container is in the index."),
)
# fmt: on
