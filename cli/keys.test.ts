import { randomBytes } from 'node:crypto'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, expect, it } from 'vitest'
import { runInProcess, useFolder } from '../test/support/command.ts'
import { linksOf, requestPage } from '../test/support/pages.ts'
import { type Organization, type Service, startService } from '../test/support/service.ts'

const folder = useFolder()
const file = join(folder, 'keys')
const writeKey = () => writeFile(file, `${randomBytes(32).toString('base64')}\n`, { mode: 0o600 })
let service: Service
let organization: Organization
beforeEach(async () => {
  await writeKey()
  service = await startService({ KITH_MASTER_KEY_FILE: file })
  organization = await service.organization()
  return service.stop
})

const kith = (...words: string[]) =>
  runInProcess(words, { DATABASE_URL: service.databaseUrl, KITH_MASTER_KEY_FILE: file }, folder)
const resultOf = async (...words: string[]) => {
  const { code, stdout, stderr } = await kith(...words, '--json')
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.not.stringContaining('    at ') })
  return JSON.parse(stdout)
}

it('kith keys rewrap changes the master key while the service runs, and a second run does nothing', async () => {
  await organization.send('POST', '/v1/people', { external_id: 'ada' })
  const { preferences_url } = await linksOf(organization, 'ada')
  const [before] = (await readFile(file, 'utf8')).split('\n')
  const { master_key, wrapped, lost } = await resultOf('keys', 'rewrap', '--new-key')
  expect([wrapped, lost]).toEqual([{ signing_keys: 1, ledger_keys: 1, link_keys: 1 }, {}])
  expect((await readFile(file, 'utf8')).split('\n')).toEqual([expect.not.stringContaining(before!), before, ''])
  expect((await stat(file)).mode & 0o777).toBe(0o600)
  expect((await requestPage(preferences_url!)).status).toBe(200)
  const { code, stderr } = await kith('keys', 'rewrap')
  expect([code, stderr]).toEqual([
    0,
    `The master key ${master_key} has wrapped 0 rows anew, and now wraps all keys and secrets.\n`,
  ])
  await writeFile(file, (await readFile(file, 'utf8')).split('\n')[0]!)
  expect(await resultOf('keys', 'rewrap')).toEqual({ master_key, wrapped: {}, lost: {} })
})

it('kith keys forget goes on after the loss of the master key: tokens and receipts stay valid, links end, webhooks get new secrets', async () => {
  await organization.send('POST', '/v1/people', { external_id: 'ada' })
  const { preferences_url } = await linksOf(organization, 'ada')
  const webhook = { url: 'https://receiver.example/', events: ['person.*'], headers: { authorization: 'x' } }
  expect((await organization.send('POST', '/v1/webhooks', webhook)).status).toBe(201)
  const source = { key: 'mg', provider: 'mailgun', secret: 'x' }
  expect((await organization.send('POST', '/v1/deliverability/sources', source)).status).toBe(201)
  const [ledgerKey] = await organization.client.ledger.keys()
  await writeKey()

  const refused = await kith('org', 'list')
  expect(refused).toMatchObject({ code: 1, stdout: '' })
  expect(refused.stderr).toMatch(
    /^The keys of this database are wrapped by the master key [0-9a-f]{16}, which \S+ does not have\. Put it into/,
  )
  expect((await kith('keys', 'forget')).code).toBe(2)
  const { replaced } = await resultOf('keys', 'forget', '--yes')
  expect(replaced).toEqual({ signing_keys: 1, ledger_keys: 1, link_keys: 1, webhooks: 1, deliverability_sources: 1 })
  expect(await kith('keys', 'forget', '--yes')).toMatchObject({
    stderr: 'All keys and secrets open. Nothing was replaced.\n',
  })

  const restarted = await startService({ KITH_MASTER_KEY_FILE: file }, service.databaseUrl)
  try {
    const send = restarted.sender(organization.token)
    expect((await send('GET', '/v1/people/ada')).status).toBe(200)
    const { keys } = (await send('GET', '/v1/ledger/keys')).body.data
    expect(keys).toHaveLength(2)
    expect(keys[1]).toMatchObject({ key: ledgerKey!.key, retired_at: expect.any(String) })
    const oldLink = preferences_url!.replace(service.address, restarted.address)
    expect((await requestPage(oldLink)).status).toBe(404)
    const created = (await send('POST', '/v1/people/ada/consent-links', {})).body.data
    expect((await requestPage(created.preferences_url)).status).toBe(200)
    expect((await send('GET', '/v1/webhooks/1')).body.data).toMatchObject({ active: true, headers: [] })
    expect((await send('POST', '/v1/webhooks/1/rotate')).body.data.secret).toMatch(/^whsec_/)
    expect((await send('GET', '/v1/deliverability/sources')).body.data.items).toEqual([])
  } finally {
    await restarted.stop()
  }
})

it('a file that is missing or has no key stops every command with a sentence that says what to do', async () => {
  for (const [content, message] of [
    ['', 'has no master key. Put it back. If there has never been one, write it with: openssl rand -base64 32'],
    ['# a comment\nabc\n', 'is not a master key: 32 bytes in base64'],
  ]) {
    await writeFile(file, content!)
    expect(await kith('org', 'list')).toMatchObject({ code: 1, stderr: expect.stringContaining(message!) })
  }
  const environment = { DATABASE_URL: service.databaseUrl, KITH_MASTER_KEY_FILE: join(folder, 'none') }
  expect(await runInProcess(['org', 'list'], environment, folder)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('cannot be read (ENOENT)'),
  })
})
