import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { readDocument, runExample } from '../client/test/examples.ts'
import { checkout } from './support/process.ts'
import { useOwnService } from './support/service.ts'
import { createShop } from './support/shop.ts'

const document = 'docs/changes.md'
const service = useOwnService()

it('the nightly sync in curl continues where it ended', async () => {
  const { client, token } = await service.organization()
  const text = await readFile(join(checkout, document), 'utf8')
  const [, script] = /## A nightly sync[\s\S]*?```sh\n([\s\S]*?)```/.exec(text)!
  const folder = await mkdtemp(join(tmpdir(), 'kith-nightly-'))
  const { PATH } = process.env
  const env = { PATH, KITH_URL: service.address, KITH_TOKEN: token }
  const nightly = async () => {
    await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', script!], { cwd: folder, env })
    const lines = (await readFile(join(folder, 'changes.ndjson'), 'utf8')).split('\n').filter(Boolean)
    return lines.map(line => JSON.parse(line).external_id)
  }
  try {
    for (const external_id of ['ada', 'bob']) await client.people.create({ external_id })
    expect(await nightly()).toEqual(['ada', 'bob'])
    expect(await nightly()).toEqual([])
    await client.people.delete('ada')
    expect(await nightly()).toEqual(['ada'])
    expect((await readFile(join(folder, 'after'), 'utf8')).trim()).toBe('3')
  } finally {
    await rm(folder, { recursive: true })
  }
})

it('the syncs in TypeScript apply each change once, and store their position', async () => {
  const { client, token } = await createShop(service, 'orders')
  for (const external_id of ['ada', 'bob']) await client.people.create({ external_id })
  const { code, location } = readDocument(document)
  const use = `
    const state: State = { after: 0 }
    const apply = async (change: Change) => console.log(change.operation, change.external_id)
    await syncNightly(state, apply)
    await syncNightly(state, apply)
    console.log(state.after)
    const stopping = new AbortController()
    const applyLive = async (change: Change) => {
      await apply(change)
      if (change.operation === 'delete') stopping.abort()
    }
    const following = followChanges(state, applyLive, stopping.signal)
    await client.people.create({ external_id: 'eve' })
    await client.people.delete('ada')
    await following
    console.log(state.after, state.logId === (await client.changes.list().page()).log_id)
  `
  const environment = { KITH_URL: service.address, KITH_TOKEN: token }
  const { printed } = await runExample({ location, code: `${code}${use}` }, client, environment)
  expect(printed).toEqual(['create ada', 'create bob', '3', 'create eve', 'delete ada', '5 true'])
})
