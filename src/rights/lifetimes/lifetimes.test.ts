import { describe, expect, it } from 'vitest'
import { follow } from '../../../test/support/followers.ts'
import { importLines, linesFrom } from '../../../test/support/lines.ts'
import { followSegments } from '../../../test/support/segments.ts'
import { type Organization, useOwnService } from '../../../test/support/service.ts'
import { readCertificate } from '../../ledger/certificate.ts'
import { retentionRulesFollower } from './run-rules.ts'

const service = useOwnService()
const dayMs = 86_400_000
const originName = 'kith.test'

/** Runs the segments and the rules with a clock that is `days` ahead. */
async function pass(days: number) {
  const nowMs = () => Date.now() + days * dayMs
  await followSegments(service)
  await follow(service.db, [retentionRulesFollower({ originName, nowMs, pausePerWork: 0 })], { nowMs })
}

// biome-ignore lint/suspicious/noExplicitAny: each test names the shape that it expects
type Item = Record<string, any>

/** Creates an organization of 40 people. The people with the language `de` are in the segment `gone`. */
async function organizationWithPeople(gone = 3) {
  const organization = await service.organization()
  const ok = async (method: string, path: string, body?: object): Promise<Item> => {
    const reply = await organization.send(method, path, body)
    expect([path, reply.status, reply.body?.error]).toEqual([path, expect.toBeOneOf([200, 201, 202]), undefined])
    return reply.body.data
  }
  const people = Array.from({ length: 40 }, (_, n) => ({ external_id: `p${n}`, language: n < gone ? 'de' : 'en' }))
  await importLines(organization, '/v1/people/import', linesFrom(people))
  await ok('POST', '/v1/segments', { key: 'gone', filter: { language: 'de' } })
  const create = (rule: object = {}) =>
    ok('POST', '/v1/retention-rules', { segment: 'gone', after_days: 30, action: 'erase', active: true, ...rule })
  const rule = () => ok('GET', '/v1/retention-rules/1')
  const left = async () => {
    const { items } = await ok('POST', '/v1/people/filter', { filter: { language: 'de' }, fields: ['external_id'] })
    return items.map(({ external_id }: Item) => external_id).toSorted()
  }
  const events = async (operation: string): Promise<Item[]> =>
    (await ok('GET', `/v1/changes?operation=${operation}&limit=1000`)).items
  return { ...organization, ok, create, rule, left, events }
}

const certificatesOf = async ({ send }: Pick<Organization, 'send'>) =>
  (await send('GET', '/v1/erasures')).body.data.items.map(
    ({ certificate }: Item) => readCertificate(certificate).erasure,
  )

describe('a retention rule', () => {
  it('is returned as it is stored by a PATCH that changes nothing', async () => {
    const org = await organizationWithPeople(1)
    await org.create({ active: false })
    expect(await org.ok('PATCH', '/v1/retention-rules/1', { after_days: 30 })).toEqual(await org.rule())
  })

  it('tells of a person a week before it erases it with a certificate, and does nothing until it is turned on', async () => {
    const org = await organizationWithPeople(1)
    expect(await org.create({ active: false })).toMatchObject({ id: 1, key: 'gone', active: false, paused: null })
    const before = await org.ok('GET', '/v1/people/p0')
    await pass(40)
    expect(await org.events('retention_due')).toEqual([])
    await org.ok('PATCH', '/v1/retention-rules/1', { active: true })
    await pass(22.9)
    expect(await org.events('retention_due')).toEqual([])
    await pass(23.1)
    const [due] = await org.events('retention_due')
    const retention = { rule_id: 1, rule_key: 'gone', action: 'erase', due_at: expect.any(String) }
    expect(due).toMatchObject({
      ...{ subject: 'person', external_id: 'p0', actor: 'retention', version: 2, before: null, after: { retention } },
    })
    expect(Date.parse(due!.after.retention.due_at)).toBeGreaterThanOrEqual(Date.now() + 29.9 * dayMs)
    expect(await org.ok('GET', '/v1/people/p0')).toEqual({ ...before, version: 2 })
    expect(await org.ok('GET', '/v1/people/p0?version=2')).toMatchObject({ external_id: 'p0', language: 'de' })
    await pass(29.9)
    expect(await org.left()).toEqual(['p0'])
    await pass(30.2)
    expect(await org.left()).toEqual([])
    expect(await certificatesOf(org)).toMatchObject([
      { person_id: before.id, reason: 'Retention rule gone: 30 days in its segment', records: 'keep' },
    ])
    await pass(31)
    const runs = (await org.ok('GET', '/v1/retention-rules/1/runs')).items
    expect(runs).toMatchObject([
      { told: 0, done: 1 },
      { told: 1, done: 0 },
    ])
    const logged = (await org.ok('GET', '/v1/changes?subject=retention_rule')).items
    expect(logged.map(({ after }: Item) => after.run).filter(Boolean)).toMatchObject([
      { action: 'erase', told: 1, done: 0 },
      { action: 'erase', told: 0, done: 1 },
    ])
  })

  it('deletes people if it says so, whom a restore brings back', async () => {
    const org = await organizationWithPeople(2)
    await org.create({ action: 'delete', after_days: 1 })
    await pass(0.1)
    expect(await org.events('retention_due')).toHaveLength(2)
    await pass(6.9)
    expect(await org.left()).toEqual(['p0', 'p1'])
    await pass(7.2)
    expect(await org.left()).toEqual([])
    const { id } = (await org.events('delete'))[0]!
    await org.ok('POST', `/v1/people/internal/${id}/restore`)
    expect(await org.left()).toHaveLength(1)
    await pass(8)
    expect(await org.left()).toHaveLength(1)
  })

  it('begins anew for a person who left the segment, and leaves one who is out of it at the moment of the erasure', async () => {
    const org = await organizationWithPeople(2)
    await org.create()
    await pass(23.1)
    await org.ok('PATCH', '/v1/people/p0', { language: 'en' })
    await pass(23.2)
    await org.ok('PATCH', '/v1/people/p0', { language: 'de' })
    await followSegments(service)
    // The follower of the segments has not read this change yet.
    await org.ok('PATCH', '/v1/people/p1', { language: 'fr' })
    const nowMs = () => Date.now() + 30.2 * dayMs
    await follow(service.db, [retentionRulesFollower({ originName, nowMs, pausePerWork: 0 })], { nowMs })
    expect(await org.left()).toEqual(['p0'])
    expect(await org.ok('GET', '/v1/people/p1')).toMatchObject({ language: 'fr' })
    expect((await org.events('retention_due')).map(({ external_id }) => external_id)).toEqual(
      expect.arrayContaining(['p0', 'p0', 'p1']),
    )
  })

  it('keeps its daily limit over restarts', async () => {
    const org = await organizationWithPeople(4)
    await org.create({ daily_limit: 2, after_days: 7 })
    for (const hours of [0, 1, 2]) await pass(1 + hours / 1_000)
    expect(await org.events('retention_due')).toHaveLength(2)
    await pass(2.1)
    expect(await org.events('retention_due')).toHaveLength(4)
    await org.ok('PATCH', '/v1/retention-rules/1', { daily_limit: 1 })
    for (const [days, count] of [
      [20.0, 3],
      [20.001, 3],
      [21.1, 2],
      [22.1, 1],
      [23.1, 0],
    ] as const) {
      await pass(days)
      expect([days, await org.left()]).toEqual([days, expect.toSatisfy(({ length }: string[]) => length === count)])
    }
  })

  it('goes on after a crash in the middle of a run, and neither exceeds the limit nor loses what was done from the log', async () => {
    const org = await organizationWithPeople(3)
    await org.create()
    await pass(23.1)
    await org.ok('PATCH', '/v1/retention-rules/1', { daily_limit: 2 })
    const nowMs = () => Date.now() + 30.2 * dayMs
    let reads = 0
    const dying = {
      ...{ nowMs, pausePerWork: 0 },
      get originName() {
        reads += 1
        // The first erasure reads this name once, and the second one fails.
        if (reads > 1) throw new Error('power cut')
        return originName
      },
    }
    const follower = retentionRulesFollower(dying)
    const work: typeof follower.work = async task =>
      task.organization_id === org.id ? follower.work(task) : { sequence: task.head }
    await follow(service.db, [{ ...follower, work }], { nowMs, report: () => {} })
    expect(await org.left()).toHaveLength(2)
    for (const days of [30.21, 30.22]) await pass(days)
    expect(await org.left()).toHaveLength(1)
    await pass(31.3)
    expect(await org.left()).toEqual([])
    expect(await certificatesOf(org)).toHaveLength(3)
    const logged = (await org.ok('GET', '/v1/changes?subject=retention_rule')).items
    const runs = logged.flatMap(({ after }: Item) => (after.run?.done > 0 ? [after.run.done] : []))
    expect([runs.includes(1), runs.includes(2), runs.at(-1)]).toEqual([true, true, 1])
  })

  it('lets a limit be lowered below what was done today', async () => {
    const org = await organizationWithPeople(3)
    await org.create()
    await pass(23.1)
    await org.ok('PATCH', '/v1/retention-rules/1', { daily_limit: 1 })
    await pass(23.2)
    expect(await org.rule()).toMatchObject({ active: true, paused: null })
  })

  it('stops itself before it takes more than a tenth of all people in a day, and says so everywhere', async () => {
    const org = await organizationWithPeople(5)
    await org.create()
    await pass(31)
    expect(await org.events('retention_due')).toEqual([])
    const paused = { reason: 'too_many', message: expect.stringContaining('lower daily_limit'), at: expect.any(String) }
    expect(await org.rule()).toMatchObject({ active: false, paused })
    const logged = (await org.ok('GET', '/v1/changes?subject=retention_rule')).items
    expect(logged.at(-1)).toMatchObject({ before: { active: true }, after: { active: false, paused: 'too_many' } })
    expect(await org.ok('PATCH', '/v1/retention-rules/1', { active: true, daily_limit: 4 })).toMatchObject({
      ...{ active: true, paused: null },
    })
    await pass(31)
    expect(await org.events('retention_due')).toHaveLength(4)
  })

  it('begins anew when its segment means something else, and takes nobody when the segment is deleted', async () => {
    const org = await organizationWithPeople(2)
    await org.ok('POST', '/v1/segments', { key: 'outer', filter: { $segment: 'gone' } })
    await org.create({ segment: 'outer', key: 'rule' })
    await pass(23.1)
    expect(await org.events('retention_due')).toHaveLength(2)
    await org.ok('PATCH', '/v1/segments/gone', { name: 'Gone' })
    await pass(25)
    expect(await org.events('retention_due')).toHaveLength(2)
    const count = async () => (await org.ok('GET', '/v1/retention-rules/1/preview')).count
    await service.sql(`update segment_members set entered_at = now() - interval '1 year' where organization_id = $1`, [
      org.id,
    ])
    expect(await count()).toBe(0)
    await service.sql(`update segments set filter_changed_at = now() - interval '1 year' where organization_id = $1`, [
      org.id,
    ])
    await org.ok('PATCH', '/v1/segments/gone', { description: 'People who have gone' })
    await org.ok('PATCH', '/v1/segments/outer', { description: 'As gone' })
    expect(await count()).toBe(2)
    await org.ok('PATCH', '/v1/segments/gone', { filter: { language: { $in: ['de', 'fr'] } } })
    expect(await count()).toBe(0)
    await pass(23)
    await org.ok('DELETE', '/v1/segments/outer')
    await pass(40)
    expect(await org.left()).toEqual(['p0', 'p1'])
    expect(await org.rule()).toMatchObject({ active: true, segment: null, paused: null })
    expect((await org.send('PATCH', '/v1/retention-rules/1', { after_days: 31 })).status).toBe(400)
    await org.ok('PATCH', '/v1/retention-rules/1', { segment: 'gone' })
  })

  it('counts from the moment at which the segment was computed for those who were in it before', async () => {
    const org = await organizationWithPeople(1)
    await pass(0)
    await org.create({ after_days: 1 })
    expect(await org.ok('GET', '/v1/retention-rules/1/preview')).toMatchObject({ count: 0, held: 0 })
    await service.sql(
      `update segment_members set entered_at = entered_at - interval '2 days' where organization_id = $1`,
      [org.id],
    )
    // The filter of the segment is newer than these entries, so the stays do not count yet.
    expect(await org.ok('GET', '/v1/retention-rules/1/preview')).toMatchObject({ count: 0, held: 0 })
    await service.sql(
      `update segments set filter_changed_at = filter_changed_at - interval '3 days' where organization_id = $1`,
      [org.id],
    )
    await org.ok('PATCH', '/v1/segments/gone', { description: 'People who have gone' })
    const preview = await org.ok('GET', '/v1/retention-rules/1/preview')
    expect(preview).toMatchObject({ count: 1, would_pause: false, items: [{ external_id: 'p0', announced_for: null }] })
  })

  it('refuses an unknown segment and a key that is taken, and is deleted', async () => {
    const org = await organizationWithPeople(1)
    const body = { segment: 'gone', after_days: 30, action: 'erase' }
    await org.ok('POST', '/v1/retention-rules', body)
    expect((await org.send('POST', '/v1/retention-rules', body)).status).toBe(409)
    expect((await org.send('POST', '/v1/retention-rules', { ...body, segment: 'none' })).status).toBe(400)
    const dryRun = (await org.send('PATCH', '/v1/retention-rules/1?dry_run=true', { active: true })).body.data
    expect(dryRun).toMatchObject({ dry_run: true, changes: [{ after: { active: true } }] })
    expect(await org.rule()).toMatchObject({ active: false })
    const reader = {
      Authorization: `Bearer ${await service.tokenFor(org.key, 'people:read people:write schema:write')}`,
    }
    for (const path of ['', '/1', '/1/preview', '/1/runs'])
      expect((await org.send('GET', `/v1/retention-rules${path}`, undefined, reader)).status).toBe(403)
    await org.ok('DELETE', '/v1/retention-rules/1')
    expect((await org.send('GET', '/v1/retention-rules/1')).status).toBe(404)
    expect((await org.ok('GET', '/v1/retention-rules')).items).toEqual([])
    expect(await org.ok('POST', '/v1/retention-rules', body)).toMatchObject({ id: 2 })
  })
})

describe('a legal hold', () => {
  it('keeps a person from a rule, and from an erasure by hand without override_hold', async () => {
    const org = await organizationWithPeople(2)
    await org.create()
    await pass(23.1)
    const hold = await org.ok('POST', '/v1/people/p0/hold', { reason: 'Case 17' })
    expect(hold).toMatchObject({ id: 1, people: [{ external_id: 'p0' }], reason: 'Case 17', until: null })
    expect((await org.ok('GET', `/v1/holds?person=${hold.people[0].id}`)).items).toEqual([hold])
    await pass(40)
    expect(await org.left()).toEqual(['p0'])
    expect(await org.ok('GET', '/v1/retention-rules/1/preview')).toMatchObject({ count: 0 })
    const refused = await org.send('POST', '/v1/people/p0/erase', { reason: 'Asked' })
    expect([refused.status, JSON.stringify(refused.body)]).toEqual([409, expect.stringContaining('override_hold')])
    expect(await org.ok('DELETE', '/v1/people/p0/hold')).toBe(true)
    expect((await org.send('DELETE', '/v1/people/p0/hold')).status).toBe(404)
    expect((await org.ok('GET', `/v1/holds?person=${hold.people[0].id}`)).items).toEqual([])
    await pass(41)
    // The rule announces the person again, which gives the person another week.
    expect(await org.left()).toEqual(['p0'])
    await org.ok('POST', '/v1/people/p0/hold', { reason: 'Case 18' })
    await org.ok('POST', '/v1/people/p0/erase', { reason: 'Asked', override_hold: true })
    expect((await org.ok('GET', '/v1/holds')).items).toEqual([])
    expect((await org.send('POST', '/v1/people/p0/hold', { reason: 'Late' })).status).toBe(404)
    const { items } = await org.ok('GET', '/v1/changes?subject=hold')
    expect(items.map(({ id, operation }: Item) => [id, operation])).toEqual([
      [1, 'create'],
      [1, 'delete'],
      [2, 'create'],
    ])
  })

  it('survives a deletion, a merge and its undoing, and is in the dossier', async () => {
    const org = await organizationWithPeople(1)
    const { id } = await org.ok('GET', '/v1/people/p0')
    await org.ok('POST', '/v1/people/p0/hold', { reason: 'Case 17', until: '2100-01-01T00:00:00Z' })
    await org.ok('POST', '/v1/people/p1/merge', { from: 'p0' })
    expect((await org.ok('GET', '/v1/holds')).items).toMatchObject([{ people: [{ external_id: 'p1' }] }])
    expect((await org.send('POST', '/v1/people/p1/erase', { reason: 'Asked' })).status).toBe(409)
    // The hold now covers p1 too.
    await org.ok('POST', '/v1/people/p1/hold', { reason: 'Case 17 and 18' })
    await org.ok('POST', '/v1/people/p1/unmerge', { from_id: id })
    const holdsOf = async (person: string) => (await org.ok('GET', `/v1/holds?person=${person}`)).items
    expect((await holdsOf(id))[0].people).toHaveLength(2)
    await org.ok('DELETE', '/v1/people/p1/hold')
    expect(await holdsOf(id)).toMatchObject([{ people: [{ external_id: 'p0' }] }])
    await org.ok('DELETE', '/v1/people/p0')
    expect((await org.send('POST', `/v1/people/internal/${id}/erase`, { reason: 'Asked' })).status).toBe(409)
    const dossier = await org.send('GET', `/v1/people/internal/${id}/dossier`)
    expect(JSON.stringify(dossier.body ?? dossier)).toContain('Case 17 and 18')
  })

  it('ends by itself at its time', async () => {
    const org = await organizationWithPeople(1)
    const past = { reason: 'Case', until: '2020-01-01T00:00:00Z' }
    expect((await org.send('POST', '/v1/people/p0/hold', past)).status).toBe(400)
    await org.ok('POST', '/v1/people/p0/hold', { ...past, until: new Date(Date.now() + dayMs).toISOString() })
    await service.sql(`update person_holds set until = now() - interval '1 second' where organization_id = $1`, [
      org.id,
    ])
    expect((await org.ok('GET', '/v1/holds')).items).toEqual([])
    await org.ok('POST', '/v1/people/p0/erase', { reason: 'Asked' })
  })
})
