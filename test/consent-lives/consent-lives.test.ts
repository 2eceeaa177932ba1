import { beforeAll, describe, expect, it } from 'vitest'
import { verifyReceipt } from '../../client/index.ts'
import { contextOf } from '../../src/db/context.ts'
import { auditLedger } from '../../src/ledger/audit.ts'
import { fuzzSeed } from '../hostile/seed.ts'
import { sealLedgers } from '../support/ledger.ts'
import { useOwnService } from '../support/service.ts'
import { type Life, type Lives, liveThrough } from './lives.ts'
import { type Kept, type Purpose, purposes, standingOf, stateOf } from './model.ts'

const service = useOwnService()
const count = Number(process.env.KITH_CONSENT_LIVES ?? 300)
const seed = fuzzSeed()
/** The number of people that are read one by one. The decisions about many include all people. */
const sampleSize = 30

let told: Lives
let answers: number
beforeAll(async () => {
  told = await liveThrough(await service.organization(), seed, count)
  answers = told.lives.reduce((sum, life) => sum + life.kept.at(-1)!.length, 0)
  console.log(`${answers} answers of ${count} people, KITH_FUZZ_SEED=${seed}`)
}, 600_000)

const sample = () => told.lives.filter((_, index) => index % Math.ceil(count / sampleSize) === 0)
const now = (life: Life) => life.kept.at(-1)!

/** Newest write first, then by consent type and channel, as the service lists them. */
const newestFirst = (kept: Kept[]) =>
  [...kept].sort(
    (a, b) => b.write - a.write || a.consent_type_id - b.consent_type_id || (a.channel < b.channel ? -1 : 1),
  )

async function historyOf(life: Life) {
  const { items, has_more } = await told.organization.client.consents.history(life.external_id, { size: 1_000 }).page()
  expect(has_more).toBe(false)
  return items
}

async function inGroups<T>(list: T[], work: (element: T) => Promise<void>) {
  for (let at = 0; at < list.length; at += 20) await Promise.all(list.slice(at, at + 20).map(work))
}

const addressOf = ({ email, mobile_number }: Life, { channel }: Purpose) =>
  channel === 'email' ? email : mobile_number

describe('consent lives', () => {
  it('have every kind of answer', () => {
    const all = told.lives.flatMap(now)
    const kinds = {
      grants: all.filter(({ state, pending }) => state && !pending),
      refusals: all.filter(({ state }) => !state),
      pending: all.filter(({ pending }) => pending),
      confirmed: all.filter(({ method, consent_type_id }) => method === 'double_opt_in' && consent_type_id === 2),
      superseded: all.filter(({ superseded }) => superseded),
      undated: all.filter(({ collected_at }) => collected_at === undefined),
      texts: all.filter(({ text_version }) => text_version !== undefined),
    }
    for (const [kind, found] of Object.entries(kinds)) expect(found.length, kind).toBeGreaterThan(count / 20)
  })

  it('have the history of the model, with the evidence of every answer', { timeout: 600_000 }, async () => {
    await inGroups(told.lives, async life => {
      const items = await historyOf(life)
      const recorded = items.map(
        ({ sequence, version, at, actor, request_id, text_sha256, user_agent, undated, ...claimed }) => claimed,
      )
      const expected = newestFirst(now(life)).map(({ write, time, ...kept }) => ({
        ...{
          collected_at: null,
          method: null,
          source: null,
          ip: null,
          text_version: null,
          reference: null,
          consent_string: null,
        },
        ...kept,
      }))
      expect(recorded, life.external_id).toEqual(expected)
      for (const { undated, collected_at } of items)
        expect([undated, collected_at]).not.toEqual([true, expect.any(String)])
      // The answers of a write share its version, and later writes have later ones.
      const writes = newestFirst(now(life)).map(({ write }) => write)
      const versions = items.map(({ version }) => version)
      for (const [index, version] of versions.slice(1).entries())
        expect(Math.sign(versions[index]! - version)).toBe(Math.sign(writes[index]! - writes[index + 1]!))
    })
  })

  it('end in the states of the model, with the time, the method and the text of the answer that stands', {
    timeout: 600_000,
  }, async () => {
    await inGroups(told.lives, async life => {
      const person = await told.organization.client.people.get(life.external_id)
      const states = purposes.map(purpose => {
        const standing = standingOf(now(life), purpose)
        const { consent_type_id, channel } = purpose
        return {
          ...{ consent_type_id, channel, state: stateOf(now(life), purpose) },
          source: standing ? 'answer' : 'default',
          ...(standing?.collected_at && { answered_at: standing.collected_at }),
          ...(standing?.pending && { pending: true }),
          ...(standing?.method && { method: standing.method }),
          ...(standing?.text_version && { text_version: standing.text_version }),
        }
      })
      expect(person.consents, life.external_id).toMatchObject(states)
      expect(person.consents.filter(({ pending }) => pending)).toHaveLength(states.filter(each => each.pending).length)
      for (const channel of ['email', 'sms'] as const) {
        const ofChannel = purposes.filter(purpose => purpose.channel === channel && standingOf(now(life), purpose))
        const summary = ofChannel.length === 0 ? null : ofChannel.some(purpose => stateOf(now(life), purpose))
        expect(person[`${channel}_consent`], life.external_id).toBe(summary)
      }
    })
  })

  it.each(purposes.map(purpose => [`${purpose.consent_type_id} by ${purpose.channel}`, purpose] as const))(
    'decide consent type %s as the model, by the answer that stands',
    { timeout: 600_000 },
    async (_, purpose) => {
      for (let at = 0; at < count; at += 1_000) {
        const lives = told.lives.slice(at, at + 1_000)
        const names = lives.map(({ external_id }) => external_id)
        const { items } = await told.organization.client.consents.contactableMany(names, purpose)
        expect(items.map(({ allowed }) => allowed)).toEqual(
          lives.map(life => addressOf(life, purpose) !== null && stateOf(now(life), purpose)),
        )
        for (const [index, { reasons }] of items.entries()) {
          const life = lives[index]!
          const reason = reasons.find(({ rule }) => rule === 'answer')
          const { collected_at = null, state, pending } = standingOf(now(life), purpose) ?? {}
          if (reason) expect(reason, life.external_id).toMatchObject({ collected_at, state, pending })
        }
      }
    },
  )

  it('have the states and decisions of the model at every past moment', { timeout: 600_000 }, async () => {
    const { client } = told.organization
    for (const [round, at] of told.moments.entries())
      await inGroups(sample(), async life => {
        const kept = life.kept[round]!
        const person = await client.people.get(life.external_id, { at })
        expect(
          person.consents.map(({ state }) => state),
          `${life.external_id} at ${at}`,
        ).toEqual(purposes.map(purpose => stateOf(kept, purpose)))
        for (const purpose of purposes) {
          const { allowed } = await client.consents.contactable(life.external_id, purpose, { at })
          expect(allowed, `${life.external_id} at ${at}`).toBe(
            addressOf(life, purpose) !== null && stateOf(kept, purpose),
          )
        }
      })
  })

  it('are sealed in the ledger, each answer once, and their receipts prove them', { timeout: 600_000 }, async () => {
    const { organization } = told
    await sealLedgers(service)
    const { size, findings, waiting } = await auditLedger(contextOf(service.db, organization.id))
    expect({ size, findings, waiting }).toEqual({ size: answers, findings: [], waiting: 0 })
    let proved = 0
    await inGroups(sample(), async life => {
      for (const { sequence, consent_type_id, channel, state, previous_state } of await historyOf(life)) {
        const purpose = { consent_type_id, channel }
        const receipt = await organization.client.consents.receipt(life.external_id, purpose, { sequence })
        const { entry } = await verifyReceipt(Buffer.from(JSON.stringify(receipt)))
        expect(entry).toMatchObject({ sequence, consent_type_id, channel, state })
        expect(entry.previous_state ?? null).toBe(previous_state)
        proved += 1
      }
    })
    expect(proved).toBeGreaterThan(sampleSize)
  })
})
