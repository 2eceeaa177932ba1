import { afterAll, expect, it } from 'vitest'
import { runInProcess, startCommand } from '../../test/support/command.ts'
import { throwReported } from '../../test/support/followers.ts'
import { endProcesses, launch, terminate } from '../../test/support/process.ts'
import { startService } from '../../test/support/service.ts'
import { useTwoCells } from '../../test/support/two-cells.ts'
import { createFollowers } from '../followers/followers.ts'
import { ledgerFollower } from '../ledger/seal.ts'

const cells = useTwoCells({ KITH_LIMIT_REQUEST_MS: '4000' })
const { environment, sql, cellOf, rowsIn, triggersIn, createFilled } = cells
const names = ['main', 'b'] as const

afterAll(endProcesses)

it('kith serve works behind the writes of every cell, in each of its workers', async () => {
  const { id, token } = await cells.service.organization('second', 'b')
  const kith = launch(environment, ['serve', '--workers', '2'])
  const address = await kith.ready
  const response = await fetch(`${address}/v1/people`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ external_id: 'sealed', consents: [{ consent_type_id: 1, channel: 'email', state: true }] }),
  })
  expect(response.status).toBe(201)
  await expect
    .poll(() => sql('b', `select size::integer from ledgers where organization_id = ${id}`), {
      timeout: 20_000,
    })
    .toEqual([{ size: 1 }])
  expect(await terminate(kith)).toBe(0)
}, 60_000)

it('kith org move moves an organization under load: every acknowledged write is there once, and no read misses a row', async () => {
  const organization = await createFilled('busy')
  const { send, id } = organization
  const before = await rowsIn('main', organization)
  const [log] = await sql('main', `select log_id from change_heads where organization_id = ${id}`)
  // A second process, which must not read from the old cell what was written to the new one.
  const other = await startService(environment, cells.databases.main.url)
  const readElsewhere = other.sender(organization.token)
  const followings = names.map(name =>
    createFollowers(cellOf(name).db, [ledgerFollower({ originName: 'kith' })], { report: () => {} }),
  )
  for (const following of followings) following.start()
  let isRunning = true
  const accepted = new Map<string, number>()
  const uncertain = new Set<string>()
  const write = async (writer: number) => {
    for (let index = 0; isRunning; ) {
      const own = `w${writer}-${index % 40}`
      const body = {
        first_name: `n${index}`,
        consents: [{ consent_type_id: 1, channel: 'sms', state: index % 80 < 40 }],
      }
      const reply =
        index < 40
          ? await send('POST', '/v1/people', { external_id: own, ...body })
          : await send('PATCH', `/v1/people/${own}`, body)
      // A slow machine may exceed the deadline of a request, whose write may then have been stored.
      if (reply.status === 504 || reply.body.outcome === 'unknown') uncertain.add(own)
      if (reply.status >= 503) {
        if (reply.status === 503) expect(reply.headers.get('Retry-After')).toBe('1')
        continue
      }
      if (uncertain.has(own) && reply.status === 409) {
        index += 1
        continue
      }
      expect(reply.status).toBe(index < 40 ? 201 : 200)
      accepted.set(own, (accepted.get(own) ?? 0) + 1)
      index += 1
      const read = await readElsewhere('GET', `/v1/people/${own}`)
      if (read.status >= 503 || uncertain.has(own)) continue
      expect([read.status, read.body.data?.version]).toEqual([200, accepted.get(own)])
    }
  }
  const read = async () => {
    for (let index = 0; isRunning; index += 1) {
      const reply = await send('GET', `/v1/people/p${index % 30}`)
      if (reply.status >= 503) continue
      expect([reply.status, reply.body.data?.email]).toEqual([200, `p${index % 30}@example.org`])
    }
  }
  const loads = Promise.all([write(1), write(2), write(3), read()])
  const moved = await runInProcess(['org', 'move', 'busy', '--to', 'b'], environment)
  isRunning = false
  await loads.finally(() => other.stop())
  for (const following of followings) await following.stop()
  expect(moved).toMatchObject({ code: 0 })
  expect(moved.stderr).toMatch(/lives in the cell b\.\nDeleted its rows in the cell main\.\n$/)
  expect(accepted.size).toBe(120)
  for (const [own, version] of accepted) {
    const [row] = await sql(
      'b',
      `select version from entities where organization_id = ${id} and external_id = '${own}'`,
    )
    // Each acknowledged write is one version, and no refused one was stored.
    if (!uncertain.has(own)) expect([own, row!.version]).toEqual([own, version])
  }
  const [numbers] = await sql(
    'b',
    `select count(*)::integer as changes, count(distinct sequence)::integer as numbers, max(sequence)::integer as last,
       (select h.sequence::integer from change_heads h where h.organization_id = ${id}) as head,
       (select h.log_id from change_heads h where h.organization_id = ${id}) as log_id
     from changes where organization_id = ${id}`,
  )
  const { head } = numbers as { head: number }
  expect(numbers).toEqual({ changes: head, numbers: head, last: head, head, log_id: log!.log_id })
  const after = await rowsIn('b', organization)
  for (const [table, count] of Object.entries(before)) expect([table, after[table]! >= count]).toEqual([table, true])
  expect(await rowsIn('main', organization)).toEqual({ change_heads: 1 })
  expect(await triggersIn('main', organization)).toEqual([])
  const sealing = createFollowers(cellOf('b').db, [ledgerFollower({ originName: 'kith' })], { report: throwReported })
  await sealing.settle()
  await sealing.stop()
  const verified = await runInProcess(['ledger', 'verify', '--org', 'busy'], environment)
  expect(verified.stdout).toMatch(/^busy: [\d,]+ entries verified/)
  const [answers] = await sql('b', `select count(*)::integer as n from consent_history where organization_id = ${id}`)
  expect(verified.stdout.replaceAll(',', '')).toContain(`busy: ${answers!.n} entries`)
  // The head that remains in the old cell refuses every write.
  await expect(
    sql('main', `update change_heads set sequence = sequence + 1 where organization_id = ${id}`),
  ).rejects.toThrow(/change_heads_moved/)
  const again = await runInProcess(['org', 'move', 'busy', '--to', 'b', '--json'], environment)
  expect(again.stdout).toBe('{"key":"busy","cell":"b","moved":false}\n')
}, 120_000)

it('kith org move starts over after its command was killed', async () => {
  const { send } = await createFilled('killed')
  const command = startCommand(['org', 'move', 'killed', '--to', 'b'], environment)
  await new Promise<void>(resolve => {
    command.child.stderr.on('data', data => /Comparing/.test(String(data)) && resolve())
  })
  command.child.kill('SIGKILL')
  await command.ended
  expect((await send('PATCH', '/v1/people/p1', { first_name: 'Between' })).status).toBe(200)
  const doctor = await runInProcess(['doctor'], environment)
  expect(doctor.stdout).toMatch(/^warning +cells +a move of the organization killed from the cell main to b/m)
  const again = await runInProcess(['org', 'move', 'killed', '--to', 'b'], environment)
  expect(again.stderr).toMatch(/^The earlier move to the cell b has been undone\.\n/)
  expect(again.code).toBe(0)
  const { body } = await send('GET', '/v1/people/p1')
  expect(body.data.first_name).toBe('Between')
  expect((await runInProcess(['doctor'], environment)).stdout).not.toMatch(/organization killed/)
}, 120_000)
