import { setTimeout } from 'node:timers/promises'
import type { Checks } from './checks.ts'
import type { Figures } from './load.ts'
import type { LoadOptions } from './options.ts'
import { type LoadSetup, readProcessUsage, resetPeak, type Tenant } from './setup.ts'
import { runLoad } from './source.ts'

/** The input of a scenario; `maximum` is the rate of the closed loop, in requests per second. */
export type ScenarioContext = { setup: LoadSetup; options: LoadOptions; maximum: number; checks: Checks }

/** The maximum of connections of an open loop. While all of them wait for a response, due requests are queued. */
const maxConnections = 1_000
const stormFactor = 4
const calmSeconds = 10
const neighbourRate = 50
const slowFilters = 24
const answeredP99Ms = 2_000
const refusedP99Ms = 1_000
const maxMb = 512

let loadCount = 10

/** Runs an open loop: `rate` requests per second are due, independent of their responses. */
function runOpenLoop(
  { options: { seed, work } }: ScenarioContext,
  tenant: Tenant,
  rate: number,
  seconds: number,
  isPrioritized = false,
): Promise<Figures> {
  loadCount += 1
  return runLoad({
    ...tenant,
    isPrioritized,
    seed: seed + loadCount,
    work,
    seconds,
    connections: 64,
    rate: Math.max(1, rate),
    maxConnections,
  })
}

const ms = ({ count, p50Ms, p99Ms, maxMs }: Figures['answered']) =>
  `${count} (p50 ${p50Ms}, p99 ${p99Ms}, max ${maxMs} ms)`

const describeFigures = (
  name: string,
  { due, seconds, connections, answered, refused, broken, unanswered, others }: Figures,
) =>
  `        ${name}: ${Math.round(due / seconds)}/s due on up to ${connections} connections: answered ${ms(answered)}, ` +
  `refused ${ms(refused)}, broken ${broken}, unanswered ${unanswered}, others ${JSON.stringify(others)}`

const hasNoFailures = ({ broken, unanswered, others }: Figures) =>
  broken + unanswered + Object.keys(others).length === 0

/** Sends four times the maximum. Expects quick refusals of the excess, timely responses to the rest, and a recovery within 5 s. */
export async function storm(context: ScenarioContext): Promise<void> {
  const { setup, options, maximum, checks } = context
  const before = await runOpenLoop(context, setup.one, maximum / stormFactor, calmSeconds)
  resetPeak(setup.service)
  const during = await runOpenLoop(context, setup.one, maximum * stormFactor, options.seconds.storm)
  const { peakMb } = readProcessUsage(setup.service)
  await setTimeout(5_000)
  const after = await runOpenLoop(context, setup.one, maximum / stormFactor, calmSeconds)
  const { answered, refused, withoutRetryAfter } = during
  checks.print(describeFigures('before', before))
  checks.print(describeFigures('storm', during))
  checks.print(describeFigures('after', after))
  checks.check('every request of the storm succeeds or is refused with 429 or 503', hasNoFailures(during))
  checks.check(`refusals have a Retry-After: ${withoutRetryAfter} do not`, withoutRetryAfter === 0)
  checks.check(`refusals take at most 1 s: p99 ${refused.p99Ms} ms`, refused.p99Ms <= refusedP99Ms)
  checks.check(`successful responses take at most 2 s: p99 ${answered.p99Ms} ms`, answered.p99Ms <= answeredP99Ms)
  const goodput = Math.round(answered.count / options.seconds.storm)
  checks.check(
    `the rate of successful responses stays above a tenth of the maximum: ${goodput}/s of ${maximum}/s`,
    goodput >= maximum / 10,
  )
  checks.check(`kith uses less than ${maxMb} MB: ${Math.round(peakMb)} MB`, peakMb < maxMb)
  checks.check(
    `5 s after the storm latencies are as before: p50 ${before.answered.p50Ms} and ${after.answered.p50Ms} ms, p99 ${before.answered.p99Ms} and ${after.answered.p99Ms} ms`,
    hasNoFailures(after) && after.refused.count === 0 && isAsBefore(before, after),
  )
}

/** Returns whether latencies at most doubled, with a margin of a few milliseconds for variations of the disk. */
const isAsBefore = (before: Figures, after: Figures) =>
  after.answered.p50Ms <= 2 * before.answered.p50Ms + 2 && after.answered.p99Ms <= 2 * before.answered.p99Ms + 10

/** Runs a storm of one organization next to a steady load of another. Expects the other's p99 to at most double. */
export async function neighbour(context: ScenarioContext): Promise<void> {
  const { setup, options, maximum, checks } = context
  const runBeside = async (rate: number, seconds: number) => {
    const neighbourLoad = runOpenLoop(context, setup.neighbour, neighbourRate, seconds, true)
    await setTimeout(1_000)
    const otherLoad = runOpenLoop(context, setup.one, rate, seconds - 1)
    const figures = await neighbourLoad
    checks.print(describeFigures(`the other at ${Math.round(rate)}/s`, await otherLoad))
    checks.print(describeFigures('the neighbour', figures))
    await setTimeout(5_000)
    return figures
  }
  const before = await runBeside(maximum / 2, Math.max(calmSeconds, options.seconds.storm / 2))
  const during = await runBeside(maximum * stormFactor, options.seconds.storm)
  checks.check(
    `no request of the neighbour is refused: ${during.refused.count}`,
    during.refused.count === 0 && hasNoFailures(during),
  )
  checks.check(
    `the neighbour's p99 at most doubles: ${before.answered.p99Ms} ms, then ${during.answered.p99Ms} ms`,
    during.answered.p99Ms <= 2 * before.answered.p99Ms,
  )
}

/** Runs slow filters of one organization next to a steady load of another. Expects them to use only the connections of their share. */
export async function filters(context: ScenarioContext): Promise<void> {
  const { setup, options, checks } = context
  const alone = await runOpenLoop(
    context,
    setup.neighbour,
    neighbourRate,
    Math.max(calmSeconds, options.seconds.storm / 2),
    true,
  )
  checks.print(describeFigures('the neighbour alone', alone))
  const neighbourLoad = runOpenLoop(context, setup.neighbour, neighbourRate, options.seconds.storm, true)
  await setTimeout(1_000)
  const slow = { seed: options.seed, work: 'slowFilters', connections: slowFilters, rate: undefined } as const
  const otherLoad = runLoad({ ...setup.linked, ...slow, seconds: options.seconds.storm - 1 })
  const duringFilters = await neighbourLoad
  checks.print(describeFigures('slow filters', await otherLoad))
  checks.print(describeFigures('the neighbour next to them', duringFilters))
  checks.check(
    `no request of the neighbour is refused: ${duringFilters.refused.count}`,
    duringFilters.refused.count === 0 && hasNoFailures(duringFilters),
  )
  checks.check(
    `the neighbour's p99 at most doubles: ${alone.answered.p99Ms} ms, then ${duringFilters.answered.p99Ms} ms`,
    duringFilters.answered.p99Ms <= 2 * alone.answered.p99Ms,
  )
}

/** Sends half of the maximum for a long time. Expects no failures, and no growth of memory or descriptors. */
export async function soak(context: ScenarioContext): Promise<void> {
  const { setup, options, maximum, checks } = context
  const partSeconds = options.seconds.soak / 5
  const usages = [readProcessUsage(setup.service)]
  const runs: Figures[] = []
  for (let part = 0; part < 5; part += 1) {
    runs.push(await runOpenLoop(context, setup.one, maximum / 2, partSeconds))
    checks.print(describeFigures(`soak, part ${part + 1} of 5`, runs.at(-1)!))
    // After a second the connections of this part are closed.
    await setTimeout(1_000)
    usages.push(readProcessUsage(setup.service))
  }
  const [, first, ...later] = usages
  const last = later.at(-1)!
  const failed = runs.filter(figures => !hasNoFailures(figures) || figures.refused.count > 0).length
  checks.check(`no request of the soak fails: ${failed} of 5 parts had failures`, failed === 0)
  const mb = usages.map(({ residentMb }) => Math.round(residentMb)).join(', ')
  checks.check(`memory does not grow: ${mb} MB`, last.residentMb < first!.residentMb + 32)
  const open = usages.map(({ descriptors }) => descriptors).join(', ')
  checks.check(`descriptors and connections do not grow: ${open}`, last.descriptors <= first!.descriptors + 4)
}
