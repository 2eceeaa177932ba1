import { writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { runInProcess, useFolder } from '../test/support/command.ts'
import { sealLedgers } from '../test/support/ledger.ts'
import { useService } from '../test/support/service.ts'
import { useShop } from '../test/support/shop.ts'

const service = useService()
const folder = useFolder()
const organization = useShop(service)
beforeEach(async () => {
  await answer('ada', 'bob')
})

async function answer(...names: string[]) {
  for (const external_id of names) await organization.client.people.create({ external_id, email_consent: true })
  await sealLedgers(service)
}

const ledger = (...args: string[]) => runInProcess(['ledger', ...args], { DATABASE_URL: service.databaseUrl })
const ofOrganization = (...args: string[]) => ledger(...args, '--org', organization.key)
const keep = async (text: string) => {
  const file = join(folder, `${organization.key}.txt`)
  await writeFile(file, text)
  return file
}

describe('kith ledger', () => {
  it('checkpoint prints the newest checkpoint as the service serves it', async () => {
    const { code, stdout, stderr } = await ofOrganization('checkpoint')
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toBe((await organization.send('GET', '/v1/ledger/checkpoint')).body.data.toString())
    const json = await ofOrganization('checkpoint', '--json')
    expect(JSON.parse(json.stdout)).toEqual({ checkpoint: stdout, size: 2 })
  })

  it('keys prints the note keys, and rotate-key adds one', async () => {
    const keys = async () => JSON.parse((await ofOrganization('keys', '--json')).stdout)
    const [before] = await keys()
    expect(before).toMatchObject({ created_at: expect.any(String), retired_at: null })
    expect(before.key).toMatch(new RegExp(`^kith/${organization.key}/[0-9a-f-]{36}\\+[0-9a-f]{8}\\+\\S{44}$`))
    const rotated = await ledger('rotate-key')
    expect(rotated.code).toBe(0)
    expect(rotated.stderr).toMatch(/^The key \S{43} signs from now on\. Earlier keys that verify: \d+\.\n$/)
    const time = expect.stringMatching(/^\d{4}-\S+Z$/)
    expect(await keys()).toMatchObject([{ retired_at: null }, { key: before.key, retired_at: time }])
  })

  it('verify exits with 0 and prints the root hash of an intact ledger', async () => {
    const { code, stdout, stderr } = await ofOrganization('verify')
    const root = (await ofOrganization('checkpoint')).stdout.split('\n')[2]
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: `${organization.key}: 2 entries verified. The root hash is ${root}.\n`,
      stderr: '',
    })
  })

  it('verify names what was changed, exits with 1, and with --json prints the findings', async () => {
    await service.sql('update consent_history set state = not state where organization_id = $1', [organization.id])
    const { code, stdout } = await ofOrganization('verify')
    expect(code).toBe(1)
    expect(stdout.split('\n')).toEqual([
      `${organization.key}: the ledger of 2 entries was changed.`,
      expect.stringMatching(/^ {2}Entry 0 \(change 1, consent type 1, email\): its answer or its salt was changed\.$/),
      expect.stringMatching(/^ {2}Entry 1 \(change 2, consent type 1, email\): its answer or its salt was changed\.$/),
      '',
    ])
    const json = await ofOrganization('verify', '--json')
    expect([json.code, JSON.parse(json.stdout)[0].findings.length]).toEqual([1, 2])
  })

  it('verify --all verifies every organization', async () => {
    const other = await service.organization()
    const { stdout } = await ledger('verify', '--all')
    expect(stdout).toContain(`${organization.key}: 2 entries verified.`)
    expect(stdout).toContain(`${other.key}: 0 entries verified.`)
  })

  it('verify --since proves that the ledger has only grown', async () => {
    const file = await keep((await ofOrganization('checkpoint')).stdout)
    await answer('eve')
    const grown = await ofOrganization('verify', '--since', file)
    expect([grown.code, grown.stdout]).toEqual([0, expect.stringContaining('3 entries verified')])
  })

  it('verify --since finds a ledger that was rewritten with all its tiles and signatures', async () => {
    const file = await keep((await ofOrganization('checkpoint')).stdout)
    for (const table of ['ledgers', 'ledger_entries', 'ledger_tiles'])
      await service.sql(`delete from ${table} where organization_id = $1`, [organization.id])
    await service.sql(`update followers set sequence = 0 where organization_id = $1 and name = 'ledger'`, [
      organization.id,
    ])
    await answer('eve')
    expect((await ofOrganization('verify')).code).toBe(0)
    const { code, stdout } = await ofOrganization('verify', '--since', file)
    expect([code, stdout]).toEqual([
      1,
      expect.stringContaining('does not begin with the 2 entries of the kept checkpoint'),
    ])
  })

  it('verify --since refuses a checkpoint of another ledger, one with a wrong signature, and no checkpoint', async () => {
    const note = (await ofOrganization('checkpoint')).stdout
    const other = await service.organization()
    const file = await keep(note)
    const foreign = await ledger('verify', '--org', other.key, '--since', file)
    expect([foreign.code, foreign.stderr]).toEqual([
      1,
      expect.stringContaining('The checkpoint belongs to another ledger'),
    ])
    const unsigned = await ofOrganization('verify', '--since', await keep(note.replace('\n2\n', '\n3\n')))
    expect([unsigned.code, unsigned.stderr]).toEqual([1, expect.stringContaining('The signature of the note')])
    const empty = await ofOrganization('verify', '--since', await keep(''))
    expect([empty.code, empty.stderr]).toEqual([1, expect.stringContaining('The note has no blank line')])
    const missing = join(folder, 'missing')
    expect(await ofOrganization('verify', '--since', missing)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`The file ${missing} does not exist.`),
    })
    // npm runs the script in the package folder and passes the user's folder in INIT_CWD.
    const typedIn = { DATABASE_URL: service.databaseUrl, npm_lifecycle_event: 'kith', INIT_CWD: folder }
    const name = basename(await keep(note))
    const found = await runInProcess(['ledger', 'verify', '--org', organization.key, '--since', name], typedIn)
    expect(found.code).toBe(0)
  })

  it('refuses an unknown organization, and --since with --all', async () => {
    const unknown = await ledger('verify', '--org', 'nobody')
    expect([unknown.code, unknown.stderr]).toEqual([1, 'There is no organization "nobody". See kith org list.\n'])
    expect((await ledger('verify', '--all', '--since', 'x')).code).toBe(2)
  })
})
