// An indexer of ERC-20 transfers made of SQD's processor: transfers and balances, with PEER_TRANSACTIONS=1 also the
// transactions and their receipts. Ends after block PEER_LAST.
const {EvmBatchProcessor} = require('@subsquid/evm-processor')
const {Pool} = require('pg')

const {PEER_RPC, PEER_DATABASE, PEER_LAST, PEER_TOKEN, PEER_TRANSACTIONS} = process.env
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'
const withTransactions = PEER_TRANSACTIONS === '1'
const pool = new Pool({connectionString: PEER_DATABASE})

const fields = {log: {topics: true, data: true, transactionHash: true}, block: {timestamp: true}}
if (withTransactions) {
  fields.transaction = {
    hash: true, from: true, to: true, value: true, nonce: true, gas: true, gasPrice: true, input: true,
    gasUsed: true, status: true,
  }
}
const processor = new EvmBatchProcessor()
  .setRpcEndpoint({url: PEER_RPC, rateLimit: 100000, capacity: 10})
  .setFinalityConfirmation(0)
  .setBlockRange({from: 0, to: Number(PEER_LAST)})
  .addLog({address: [PEER_TOKEN], topic0: [TRANSFER], transaction: withTransactions})
  .setFields(fields)

const database = {
  supportsHotBlocks: false,
  async connect() {
    return {height: -1, hash: '0x'}
  },
  async transact(info, write) {
    const client = await pool.connect()
    try {
      await client.query('begin')
      await write(client)
      await client.query('insert into position values ($1, $2)', [info.nextHead.height, info.nextHead.hash])
      await client.query('commit')
    } finally {
      client.release()
    }
  },
}

const columns = (rows) => rows[0].map((_, index) => rows.map((row) => row[index]))
const address = (topic) => '0x' + topic.slice(26)

processor.run(database, async (context) => {
  const transfers = [], transactions = [], changes = new Map()
  const change = (holder, amount) => changes.set(holder, (changes.get(holder) || 0n) + amount)
  for (const block of context.blocks) {
    for (const log of block.logs) {
      const from = address(log.topics[1]), to = address(log.topics[2]), amount = BigInt(log.data)
      transfers.push([log.id, block.header.height, block.header.timestamp, from, to, amount.toString()])
      change(from, -amount)
      change(to, amount)
    }
    for (const tx of withTransactions ? block.transactions : []) {
      transactions.push([
        tx.hash, block.header.height, tx.from, tx.to, tx.value.toString(), tx.nonce, tx.gas.toString(),
        tx.gasPrice.toString(), tx.input, tx.gasUsed.toString(), tx.status,
      ])
    }
  }
  if (!transfers.length) return
  await context.store.query(
    'insert into transfer select * from unnest($1::text[], $2::int[], $3::bigint[], $4::text[], $5::text[], $6::numeric[])',
    columns(transfers),
  )
  await context.store.query(
    'insert into account select * from unnest($1::text[], $2::numeric[])' +
    ' on conflict (id) do update set balance = account.balance + excluded.balance',
    [[...changes.keys()], [...changes.values()].map(String)],
  )
  if (transactions.length) {
    await context.store.query(
      'insert into tx select * from unnest($1::text[], $2::int[], $3::text[], $4::text[], $5::numeric[], $6::int[],' +
      ' $7::numeric[], $8::numeric[], $9::text[], $10::numeric[], $11::int[])',
      columns(transactions),
    )
  }
})
