import { createSeededRandom, type SeededRandom } from '../../cli/seed/seeded-random.ts'
import type { Organization } from '../support/service.ts'
import { type Entry, type Kept, keep, purposes } from './model.ts'

/** One request for one person: some lines of an import, an operation of a batch, or an upsert. */
type Telling = { way: 'import' | 'batch' | 'upsert'; bodies: Entry[][]; flag?: { name: string; state: boolean } }

/** A person of the test, with what the model keeps after each round of requests. */
export type Life = { external_id: string; email: string | null; mobile_number: string | null; kept: Kept[][] }

/** The lives of an organization. `moments` has a time after each round, before the next one. */
export type Lives = { organization: Organization; lives: Life[]; moments: string[] }

const rounds = 7
const day = 86_400_000
const firstDay = Date.parse('2015-01-01T00:00:00Z')

/**
 * Tells an organization the consent lives of this many people, in rounds. In each round every person answers once: by an
 * import, a batch or a single request. Answers arrive in the order in which they were given, or shuffled.
 */
export async function liveThrough(organization: Organization, seed: number, count: number): Promise<Lives> {
  await declare(organization)
  const people = Array.from({ length: count }, (_, number) => {
    const random = createSeededRandom(`consent lives ${seed} ${number}`)
    const life: Life = {
      external_id: `person-${number}`,
      email: random.chance(85) ? `person-${number}@example.com` : null,
      mobile_number: random.chance(70) ? `+39333${1_000_000 + number}` : null,
      kept: [],
    }
    return { life, tellings: tellingsOf(random) }
  })
  const moments: string[] = []
  for (let round = 0; round < rounds; round++) {
    for (const { life, tellings } of people)
      life.kept.push(keepTelling(life.kept.at(-1) ?? [], tellings[round]!, round))
    await tellAll(
      organization,
      people.map(({ life, tellings }) => ({ life, telling: tellings[round]! })),
    )
    moments.push(await momentBetween())
  }
  return { organization, lives: people.map(({ life }) => life), moments }
}

async function declare({ client }: Organization): Promise<void> {
  const { consentTypes } = client.schema
  const newsletter = [{ channel: 'email' as const, double_opt_in: true }, { channel: 'sms' as const }]
  await consentTypes.create({ key: 'newsletter', channels: newsletter })
  await consentTypes.create({ key: 'surveys', channels: [{ channel: 'email' }], default_state: true })
  for (const id of [1, 2])
    for (const text of ['Yes, write to me.', 'Yes, write to me. I can withdraw at any time.'])
      await consentTypes.addText(id, { language: 'en', text })
}

/** Returns a time after all requests so far and before all later ones. */
async function momentBetween(): Promise<string> {
  const at = Date.now() + 1
  while (Date.now() <= at) await new Promise(setImmediate)
  return new Date(at).toISOString()
}

/** The requests of a person, one for each round. Some bodies come twice, and most arrive in another order. */
function tellingsOf(random: SeededRandom): Telling[] {
  const bodies = Array.from({ length: 2 * rounds }, (_, step) => entriesOf(random, step))
  if (random.chance(60)) shuffle(bodies, random)
  return Array.from({ length: rounds }, (): Telling => {
    const way = random.pick(['import', 'import', 'batch', 'upsert'] as const)
    if (random.chance(8)) {
      const flag = { name: random.pick(['email_consent', 'sms_consent']), state: random.chance(50) }
      return { way, bodies: [], flag }
    }
    const own = bodies.splice(0, way === 'import' ? 1 + random.below(2) : 1)
    // A file can have a line twice, and a second file the lines of the first.
    if (random.chance(25)) bodies.unshift(...own)
    const all = way === 'import' && random.chance(20) ? [...own, ...own] : own
    return { way, bodies: all.length > 1 ? all.map(dated) : all }
  })
}

/** Lines of one import can be written in the same millisecond, and then the service moves the time of the second. */
const dated = (entries: Entry[]) => entries.map(entry => ({ collected_at: new Date(firstDay).toISOString(), ...entry }))

/** The answers of one body, to different purposes, in the order of a life: asked, perhaps confirmed, perhaps withdrawn. */
function entriesOf(random: SeededRandom, step: number): Entry[] {
  // The purpose with double opt-in has the most rules, so it is asked for most often.
  const asked = [...purposes, ...purposes.filter(({ needsConfirmation }) => needsConfirmation)]
  shuffle(asked, random)
  return [...new Set(asked.slice(0, 1 + random.below(3)))].map(({ consent_type_id, channel }): Entry => {
    const state = random.chance(65)
    const method = state
      ? random.pick(['web_form', 'double_opt_in', 'paper', 'phone'] as const)
      : random.pick(['unsubscribe_link', 'preference_page', 'phone'] as const)
    // Two steps have the same two days, so that a grant and a refusal often have the same time.
    const at = new Date(firstDay + ((step >> 1) * 100 + random.below(2)) * day).toISOString()
    return {
      ...{ consent_type_id, channel, state },
      ...(random.chance(75) && { collected_at: at }),
      ...(random.chance(80) && { method }),
      ...(random.chance(30) && { source: 'fair <b>in</b> Rome', ip: '192.0.2.7' }),
      ...(random.chance(20) && { reference: `form ${random.below(2)}` }),
      ...(random.chance(30) && consent_type_id < 3 && { text_version: 1 + random.below(2) }),
    }
  })
}

function shuffle<T>(list: T[], random: SeededRandom): void {
  for (let end = list.length - 1; end > 0; end--) {
    const at = random.below(end + 1)
    ;[list[end], list[at]] = [list[at]!, list[end]!]
  }
}

/** Keeps the answers of a request in the model. Each body is a write. */
function keepTelling(kept: Kept[], { way, bodies, flag }: Telling, round: number): Kept[] {
  const written: Entry[][] = flag ? [flagEntries(flag)] : bodies
  return written.reduce<Kept[]>(
    (all, entries, index) => keep(all, entries, 100 * round + index, way === 'import'),
    kept,
  )
}

/** The answers that a flag stands for: a refusal of every purpose of the channel, or a grant of the default one. */
function flagEntries({ name, state }: { name: string; state: boolean }): Entry[] {
  const channel = name === 'email_consent' ? 'email' : 'sms'
  return purposes
    .filter(purpose => purpose.channel === channel && (!state || purpose.consent_type_id === 1))
    .map(({ consent_type_id }) => ({ consent_type_id, channel, state }))
}

type Told = { life: Life; telling: Telling }

/** Sends the requests of a round: all imports as one, all operations of batches in few, and the others on their own. */
async function tellAll({ client }: Organization, told: Told[]): Promise<void> {
  const ofWay = (way: Telling['way']) =>
    told.filter(({ telling }) => telling.way === way).flatMap(({ life, telling }) => bodiesOf(life, telling))
  const lines = ofWay('import')
  for await (const answer of client.people.import(lines.map(body => JSON.stringify(body))))
    if ('line' in answer) throw new Error(`line ${answer.line}: ${JSON.stringify(answer)}`)
  const operations = ofWay('batch').map(({ external_id, ...body }) => ({ op: 'upsert' as const, external_id, body }))
  for (let at = 0; at < operations.length; at += 1_000) {
    const { items, failed } = await client.people.batch(operations.slice(at, at + 1_000))
    if (failed > 0) throw new Error(JSON.stringify(items.find(({ error }) => error)))
  }
  const singles = ofWay('upsert')
  for (let at = 0; at < singles.length; at += 20)
    await Promise.all(singles.slice(at, at + 20).map(body => client.people.upsert(body)))
}

function bodiesOf({ external_id, email, mobile_number }: Life, { bodies, flag }: Telling) {
  const profile = { external_id, ...(email && { email }), ...(mobile_number && { mobile_number }) }
  if (flag) return [{ ...profile, [flag.name]: flag.state }]
  return bodies.map(consents => ({ ...profile, consents }))
}
