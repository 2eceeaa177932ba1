import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { runInProcess, useFolder } from '../test/support/command.ts'
import { useService } from '../test/support/service.ts'
import { useShop } from '../test/support/shop.ts'

const service = useService()
const folder = useFolder()
const organization = useShop(service)
beforeEach(async () => {
  await organization.client.people.create({ external_id: 'ada', email: 'ada@example.com' })
})

const erase = (...args: string[]) =>
  runInProcess(['erase', ...args], { KITH_URL: service.address, KITH_TOKEN: organization.token })
const onDatabase = (...args: string[]) => runInProcess(args, { DATABASE_URL: service.databaseUrl })
const keep = async (text: string) => {
  const file = join(folder, `${Math.random()}.txt`)
  await writeFile(file, text)
  return file
}
const reason = ['--reason', 'Request of 2026-01-01']

describe('kith erase', () => {
  it('with --dry-run prints what would be removed, and erases nothing', async () => {
    const { code, stdout, stderr } = await erase('ada', ...reason, '--dry-run')
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(
      /^This would erase the person [\da-f-]{36}\.\n {9}1 changes would be removed\n {9}1 entities would be removed\n {9}1 idempotency_keys would be removed\n {9}2 keyed hashes would stay/,
    )
    expect((await organization.client.people.get('ada')).email).toBe('ada@example.com')
  })

  it('and kith dossier name the deleted people who had the same external identifier, on the terminal', async () => {
    const { people } = organization.client
    const { id } = await people.get('ada')
    await people.delete('ada')
    await people.create({ external_id: 'ada' })
    const told = new RegExp(`^Other people once had this external identifier and were deleted.*:\n {2}- ${id}$`, 'm')
    expect((await erase('ada', ...reason, '--dry-run')).stdout).toMatch(told)
    const environment = { KITH_URL: service.address, KITH_TOKEN: organization.token }
    const page = await runInProcess(['dossier', 'ada', '--format', 'html'], environment)
    expect([page.stderr, page.stdout]).toEqual([expect.stringMatching(told), expect.not.stringContaining(id)])
    expect((await erase('ada', ...reason, '--yes')).stderr).toMatch(told)
  })

  it('prints the certificate, which kith verify verifies, and on standard error what was removed', async () => {
    const { id } = await organization.client.people.get('ada')
    const { code, stdout, stderr } = await erase(id, '--id', ...reason, '--yes')
    expect(code).toBe(0)
    expect(stdout).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/)
    expect(stderr).toContain(`Erased the person ${id}.`)
    const verified = await runInProcess(['verify', await keep(stdout)], {})
    expect([verified.code, verified.stdout]).toEqual([0, expect.stringContaining('The certificate is valid.')])
    expect(verified.stdout).toContain(`states that it erased the person ${id}`)
    const json = await runInProcess(['verify', await keep(stdout), '--json'], {})
    expect(JSON.parse(json.stdout)).toMatchObject({
      valid: true,
      organization: organization.key,
      erasure: { person_id: id },
    })
    const changed = await runInProcess(['verify', await keep(stdout.replace(/\.(.)/, '.f'))], {})
    expect([changed.code, changed.stdout]).toEqual([1, expect.stringContaining('The certificate is not valid')])
    const otherKey = await service.organization()
    const { keys } = (await otherKey.send('GET', '/v1/ledger/keys')).body.data
    const foreign = await runInProcess(['verify', await keep(stdout), '--key', keys[0].key], {})
    expect([foreign.code, foreign.stdout]).toEqual([1, expect.stringContaining('not by the key that you gave')])
    // The command also accepts the response of the API in place of the certificate.
    const reply = await organization.send('POST', `/v1/people/internal/${id}/erase`, { reason: 'x' })
    expect((await runInProcess(['verify', await keep(JSON.stringify(reply.body))], {})).code).toBe(0)
  })

  it('asks on a terminal after it has shown what would be removed, and erases only after a yes', async () => {
    const environment = { KITH_URL: service.address, KITH_TOKEN: organization.token }
    const answer = (text: string) => runInProcess(['erase', 'ada', ...reason], environment, folder, text, true)
    for (const text of ['n\r', '\r', '\x03', ''])
      expect(await answer(text)).toMatchObject({
        code: 1,
        stdout: '',
        stderr: expect.stringMatching(/^This would erase the person .*Erase ada\? .*\nNothing was done\.\n$/s),
      })
    expect((await organization.client.people.get('ada')).email).toBe('ada@example.com')
    expect(await answer('y\r')).toMatchObject({ code: 0, stderr: expect.stringContaining('Erased the person') })
    expect((await organization.send('GET', '/v1/people/ada')).status).toBe(404)
  })

  it('without a terminal erases nothing unless --yes is given', async () => {
    expect(await erase('ada', ...reason)).toEqual({
      code: 2,
      stdout: '',
      stderr: 'Erase ada? It cannot be undone. There is no terminal to ask, so nothing was done. Use --yes to go on.\n',
    })
    expect((await organization.client.people.get('ada')).email).toBe('ada@example.com')
  })

  it('refuses a missing reason with 2, and a missing person with 1', async () => {
    expect((await erase('ada')).code).toBe(2)
    expect((await erase('nobody', ...reason, '--yes')).code).toBe(1)
  })
})

describe('kith erasures', () => {
  it('list prints the certificates, and apply erases again who came back from a backup', async () => {
    const { key, id: organization_id } = organization
    await organization.client.people.create({ external_id: 'bob', email: 'bob@example.com' })
    const tables = ['entities', 'changes']
    // The rows of the person in all tables, as a backup has them.
    const backup = Object.fromEntries(
      await Promise.all(
        tables.map(async table => [
          table,
          await service.sql(`select to_jsonb(t) as row from ${table} t where organization_id = $1`, [organization_id]),
        ]),
      ),
    ) as Record<string, { row: object }[]>
    const { id } = await organization.client.people.get('ada')
    await erase('ada', ...reason, '--yes')
    const listed = await onDatabase('erasures', 'list', '--org', key)
    expect(listed.stdout).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/)
    expect((await onDatabase('erasures', 'apply', '--yes', '--org', key)).stderr).toBe('Erased 0 people again.\n')
    const table = await onDatabase('erasures', 'list', '--org', key, '--format', 'table')
    expect(table.stdout).toMatch(/^id .*at .*reason.*\n1 /)
    // A table has no certificates, because they are wider than any terminal.
    expect(table.stdout).not.toContain('certificate')
    for (const format of ['json', 'ndjson']) {
      const { stdout } = await onDatabase('erasures', 'list', '--org', key, '--format', format)
      const again = await onDatabase('erasures', 'apply', await keep(stdout), '--yes', '--org', key)
      expect([again.code, again.stderr]).toEqual([0, 'Erased 0 people again.\n'])
    }

    for (const table of ['erasures', 'tombstones', ...tables])
      await service.sql(`delete from ${table} where organization_id = $1`, [organization_id])
    for (const table of tables)
      for (const { row } of backup[table]!)
        await service.sql(`insert into ${table} select * from jsonb_populate_record(null::${table}, $1::jsonb)`, [
          JSON.stringify(row),
        ])
    await service.sql(
      'update change_heads set sequence = 2, schema_version = schema_version + 1 where organization_id = $1',
      [organization_id],
    )
    expect((await organization.client.people.get('ada')).id).toBe(id)
    const file = await keep(listed.stdout)
    const applied = await onDatabase('erasures', 'apply', file, '--yes', '--org', key)
    expect([applied.code, applied.stderr]).toEqual([0, 'Erased 1 person again.\n'])
    expect(applied.stdout).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/)
    await expect(organization.client.people.get('ada')).rejects.toMatchObject({ code: 'not_found' })
    expect((await organization.client.people.get('bob')).email).toBe('bob@example.com')
    expect((await onDatabase('erasures', 'apply', file, '--yes', '--org', key)).stderr).toBe('Erased 0 people again.\n')

    // Another program writes the email back to the database.
    await service.sql(
      `update entities set email = 'ada@example.com', email_key = 'ada@example.com' where organization_id = $1`,
      [organization_id],
    )
    const entombed = await onDatabase('erasures', 'apply', '--yes', '--org', key)
    expect(entombed.stderr).toBe('Erased 1 person again.\n')
    await expect(organization.client.people.get('bob')).rejects.toMatchObject({ code: 'not_found' })
  })

  it('apply refuses a certificate of another organization, and one that was changed', async () => {
    const { stdout } = await erase('ada', ...reason, '--yes')
    const other = await service.organization()
    const foreign = await onDatabase('erasures', 'apply', await keep(stdout), '--org', other.key)
    expect([foreign.code, foreign.stderr]).toEqual([
      2,
      expect.stringContaining(`Line 1: the certificate belongs to the organization ${organization.key}`),
    ])
    const wrong = await onDatabase('erasures', 'apply', await keep(`${stdout}x.y.z\n`), '--org', organization.key)
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('Line 2: ')])
  })
})
