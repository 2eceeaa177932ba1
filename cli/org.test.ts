import { once } from 'node:events'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { runInProcess, startCommand, useFolder } from '../test/support/command.ts'
import { plantCanaries } from '../test/support/person-canaries.ts'
import { type Organization, useOwnService } from '../test/support/service.ts'
import { copyRows, tablesOf } from '../test/tenants/twins.ts'

const service = useOwnService({ KITH_WEBHOOK_ALLOW: '127.0.0.0/8' })
const folder = useFolder()
let tables: string[]
let source: Organization
let organization: Organization
beforeAll(async () => {
  tables = await tablesOf(service)
  source = await service.organization()
  await plantCanaries(service, source)
}, 60_000)
beforeEach(async () => {
  organization = await service.organization()
  await copyRows(service, tables, source.id, organization.id)
})

const environment = () => ({ DATABASE_URL: service.databaseUrl })
const kith = (...words: string[]) => runInProcess(words, environment())
/** The rows of an organization, by table. */
const rowsOf = async ({ id }: Organization) => {
  const rows: Record<string, unknown[]> = {}
  for (const table of tables)
    rows[table] = await service.sql(`select to_jsonb(t) from ${table} t where organization_id = $1 order by t::text`, [
      id,
    ])
  return rows
}
const countsOf = (rows: Record<string, unknown[]>) =>
  Object.fromEntries(
    Object.entries(rows).flatMap(([table, { length }]) => (length > 0 ? [[table, length] as const] : [])),
  )
/** Moves the deletion into the past, to when no request uses the organization any more. */
const letTimePass = ({ id }: Organization) =>
  service.sql(`update organizations set deleted_at = now() - interval '1 minute' where id = $1`, [id])
const isRefused = async ({ send }: Organization) => (await send('GET', '/v1/people')).status === 401

describe('kith org delete', () => {
  it('refuses the tokens before it deletes a row, and goes on after a kill until no row of the organization is left', async () => {
    expect(await isRefused(organization)).toBe(false)
    const links = await organization.send('POST', '/v1/people/bob/consent-links', {})
    const statusOfLink = async () =>
      (await fetch(service.address + new URL(links.body.data.preferences_url).pathname)).status
    expect(await statusOfLink()).toBe(200)
    const before = await rowsOf(organization)
    const { child, ended } = startCommand(['org', 'delete', organization.key, '--yes'], environment())
    let printed = ''
    child.stderr.on('data', text => {
      printed += text
    })
    while (!printed.includes('Waiting 20 s')) await once(child.stderr, 'data')
    await expect.poll(() => isRefused(organization), { timeout: 15_000 }).toBe(true)
    expect(await statusOfLink()).toBe(404)
    expect(countsOf(await rowsOf(organization))).toEqual(countsOf(before))
    child.kill('SIGKILL')
    await ended
    expect((await kith('org', 'list')).stdout).not.toContain(organization.key)
    await letTimePass(organization)
    const { code, stdout } = await kith('org', 'delete', organization.key, '--yes', '--json')
    expect([code, JSON.parse(stdout)]).toEqual([0, { key: organization.key, removed: countsOf(before) }])
    expect(countsOf(await rowsOf(organization))).toEqual({})
    const again = await kith('org', 'delete', organization.key, '--yes', '--json')
    expect([again.code, JSON.parse(again.stdout)]).toEqual([0, { key: organization.key, removed: {} }])
    expect(await isRefused(organization)).toBe(true)
  }, 60_000)

  it('leaves the rows of other organizations, and keeps the key, which tokens name', async () => {
    await letTimePass(organization)
    const before = await rowsOf(source)
    expect((await kith('org', 'delete', organization.key, '--yes')).code).toBe(0)
    expect(await rowsOf(source)).toEqual(before)
    const { code, stderr } = await kith('org', 'create', organization.key)
    expect([code, stderr]).toEqual([1, expect.stringContaining('or of one that was deleted')])
  })

  it('asks on a terminal for the key, after it has shown what the organization has', async () => {
    const answer = (text: string) =>
      runInProcess(['org', 'delete', organization.key], environment(), folder, text, true)
    for (const text of ['y\r', '\r', `${organization.key}x\r`]) {
      const { code, stdout, stderr } = await answer(text)
      expect([code, stdout]).toEqual([1, ''])
      expect(stderr).toMatch(
        /^The organization .* It has:\n +\d+ stacks\n.*Delete the organization .*\nNothing was done\.\n$/s,
      )
    }
    expect((await kith('org', 'list')).stdout).toContain(organization.key)
    expect(await isRefused(organization)).toBe(false)
    const refused = await kith('org', 'delete', organization.key)
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('Use --yes to go on.')])
  })

  it.each([
    ['the organization that every installation has', 'default', /cannot be deleted/],
    ['an unknown key', 'nobody', /There is no organization/],
  ])('refuses %s', async (_, key, message) => {
    expect(await kith('org', 'delete', key, '--yes')).toMatchObject({ code: 1, stderr: expect.stringMatching(message) })
  })
})
