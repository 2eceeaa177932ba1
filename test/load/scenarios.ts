import { setTimeout } from 'node:timers/promises'
import type { Checks } from './checks.ts'
import type { Figures } from './load.ts'
import type { LoadOptions } from './options.ts'
import { forgetPeak, holdingsOf, type LoadSetup, type Tenant } from './setup.ts'
import { offer } from './source.ts'

/** What a scene is played with; `maximum` is the closed loop's, in requests a second. */
export type Stage = { place: LoadSetup; asked: LoadOptions; maximum: number; checks: Checks }

/** Connections that an open loop may have; with all of them waiting for an answer, what is due waits, too. */
const mostConnections = 1_000
const stormFactor = 4
const calmSeconds = 10
const neighbourRate = 50
const slowFilters = 24
const answeredP99Ms = 2_000
const refusedP99Ms = 1_000
const mostMb = 512

let loads = 10

/** An open loop: so many requests a second are due whatever becomes of them. */
function offerOpenly(
  { asked: { seed, work } }: Stage,
  tenant: Tenant,
  rate: number,
  seconds: number,
  ahead = false,
): Promise<Figures> {
  loads += 1
  return offer({
    ...tenant,
    ahead,
    seed: seed + loads,
    work,
    seconds,
    connections: 64,
    rate: Math.max(1, rate),
    mostConnections,
  })
}

const ms = ({ count, p50Ms, p99Ms, mostMs }: Figures['answered']) =>
  `${count} (p50 ${p50Ms}, p99 ${p99Ms}, most ${mostMs} ms)`

const tell = (name: string, { due, seconds, connections, answered, refused, broken, unanswered, others }: Figures) =>
  `        ${name}: ${Math.round(due / seconds)}/s due on up to ${connections} connections: answered ${ms(answered)}, ` +
  `refused ${ms(refused)}, broken ${broken}, unanswered ${unanswered}, others ${JSON.stringify(others)}`

const faultless = ({ broken, unanswered, others }: Figures) => broken + unanswered + Object.keys(others).length === 0

/** Four times what can be done: the excess hears a quick no, the rest is served in time, and soon after all is as before. */
export async function storm(stage: Stage): Promise<void> {
  const { place, asked, maximum, checks } = stage
  const before = await offerOpenly(stage, place.one, maximum / stormFactor, calmSeconds)
  forgetPeak(place.service)
  const during = await offerOpenly(stage, place.one, maximum * stormFactor, asked.seconds.storm)
  const { peakMb } = holdingsOf(place.service)
  await setTimeout(5_000)
  const after = await offerOpenly(stage, place.one, maximum / stormFactor, calmSeconds)
  const { answered, refused, withoutRetryAfter } = during
  checks.say(tell('before', before))
  checks.say(tell('storm', during))
  checks.say(tell('after', after))
  checks.check('every request of the storm is answered, or refused with 429 or 503', faultless(during))
  checks.check(`refusals say when to come again: ${withoutRetryAfter} do not`, withoutRetryAfter === 0)
  checks.check(`refusals come within a second: p99 ${refused.p99Ms} ms`, refused.p99Ms <= refusedP99Ms)
  checks.check(`what is answered is so within 2 s: p99 ${answered.p99Ms} ms`, answered.p99Ms <= answeredP99Ms)
  const goodput = Math.round(answered.count / asked.seconds.storm)
  checks.check(`a tenth of the maximum is answered all along: ${goodput}/s of ${maximum}/s`, goodput >= maximum / 10)
  checks.check(`the service stays below ${mostMb} MB: ${Math.round(peakMb)} MB`, peakMb < mostMb)
  checks.check(
    `5 s later it is as before: p50 ${before.answered.p50Ms} and ${after.answered.p50Ms} ms, p99 ${before.answered.p99Ms} and ${after.answered.p99Ms} ms`,
    faultless(after) && after.refused.count === 0 && isAsBefore(before, after),
  )
}

/** Within twice, or a few milliseconds: what a disk does by itself. */
const isAsBefore = (before: Figures, after: Figures) =>
  after.answered.p50Ms <= 2 * before.answered.p50Ms + 2 && after.answered.p99Ms <= 2 * before.answered.p99Ms + 10

/** One organization's storm is no other's: the neighbour, who sends what it always sends, hardly notices. */
export async function neighbour(stage: Stage): Promise<void> {
  const { place, asked, maximum, checks } = stage
  const beside = async (rate: number, seconds: number) => {
    const own = offerOpenly(stage, place.neighbour, neighbourRate, seconds, true)
    await setTimeout(1_000)
    const other = offerOpenly(stage, place.one, rate, seconds - 1)
    const figures = await own
    checks.say(tell(`the other at ${Math.round(rate)}/s`, await other))
    checks.say(tell('the neighbour', figures))
    await setTimeout(5_000)
    return figures
  }
  const before = await beside(maximum / 2, Math.max(calmSeconds, asked.seconds.storm / 2))
  const during = await beside(maximum * stormFactor, asked.seconds.storm)
  checks.check(
    `nothing of a neighbour's is refused: ${during.refused.count}`,
    during.refused.count === 0 && faultless(during),
  )
  checks.check(
    `a neighbour's p99 stays within twice: ${before.answered.p99Ms} ms, then ${during.answered.p99Ms} ms`,
    during.answered.p99Ms <= 2 * before.answered.p99Ms,
  )
}

/** Slow filters of one organization take the connections of its share, and no others: a neighbour is served as before. */
export async function filters(stage: Stage): Promise<void> {
  const { place, asked, checks } = stage
  const alone = await offerOpenly(
    stage,
    place.neighbour,
    neighbourRate,
    Math.max(calmSeconds, asked.seconds.storm / 2),
    true,
  )
  checks.say(tell('the neighbour alone', alone))
  const own = offerOpenly(stage, place.neighbour, neighbourRate, asked.seconds.storm, true)
  await setTimeout(1_000)
  const slow = { seed: asked.seed, work: 'slowFilters', connections: slowFilters, rate: undefined } as const
  const other = offer({ ...place.linked, ...slow, seconds: asked.seconds.storm - 1 })
  const beside = await own
  checks.say(tell('slow filters', await other))
  checks.say(tell('the neighbour beside them', beside))
  checks.check(
    `nothing of a neighbour's is refused: ${beside.refused.count}`,
    beside.refused.count === 0 && faultless(beside),
  )
  checks.check(
    `a neighbour's p99 stays within twice: ${alone.answered.p99Ms} ms, then ${beside.answered.p99Ms} ms`,
    beside.answered.p99Ms <= 2 * alone.answered.p99Ms,
  )
}

/** At half of what can be done nothing fails and nothing grows, however long it goes on. */
export async function soak(stage: Stage): Promise<void> {
  const { place, asked, maximum, checks } = stage
  const fifth = asked.seconds.soak / 5
  const looks = [holdingsOf(place.service)]
  const runs: Figures[] = []
  for (let part = 0; part < 5; part += 1) {
    runs.push(await offerOpenly(stage, place.one, maximum / 2, fifth))
    checks.say(tell(`soak, part ${part + 1} of 5`, runs.at(-1)!))
    // Connections of the part before are gone by then.
    await setTimeout(1_000)
    looks.push(holdingsOf(place.service))
  }
  const [, first, ...later] = looks
  const last = later.at(-1)!
  const failed = runs.filter(figures => !faultless(figures) || figures.refused.count > 0).length
  checks.check(`no request of the soak fails: ${failed} of 5 parts had failures`, failed === 0)
  const mb = looks.map(({ residentMb }) => Math.round(residentMb)).join(', ')
  checks.check(`memory does not grow: ${mb} MB`, last.residentMb < first!.residentMb + 32)
  const open = looks.map(({ descriptors }) => descriptors).join(', ')
  checks.check(`descriptors and connections do not grow: ${open}`, last.descriptors <= first!.descriptors + 4)
}
