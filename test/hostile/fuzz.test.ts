import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openApiDocument } from '../../src/app.ts'
import { type Service, startService } from '../support/service.ts'
import { broken, obey } from './invariants.ts'
import { operationsOf } from './operations.ts'
import { breakPlan, brokenPlanOf, refuses } from './refusals.ts'
import { planOf } from './requests.ts'
import { fuzzSeed } from './seed.ts'
import { createSender, type Sender } from './sender.ts'
import { digestOf, makeLane, type TestTenant } from './test-tenant.ts'

const lanesAtOnce = 12
const rounds = 45
const validARound = 12
const brokenARound = 12

let service: Service
let sender: Sender
let lanes: TestTenant[]
beforeAll(async () => {
  service = await startService()
  sender = createSender(service)
  lanes = await Promise.all(Array.from({ length: lanesAtOnce }, () => makeLane(service, sender)))
})
afterAll(async () => {
  sender.close()
  await service.stop()
})

test('every endpoint keeps the laws, whatever the document allows or forbids', { timeout: 300_000 }, async () => {
  const seed = fuzzSeed()
  const document = openApiDocument({ config: service.config })
  const operations = operationsOf(document)
  const counted = new Map<string, number>()
  const count = (key: string) => counted.set(key, (counted.get(key) ?? 0) + 1)
  // More is made than deleted: most addresses shall be somebody's.
  const often = /^(create|upsert|batch|put|patch)(Person|Record|People)/
  const weighted = operations.map(operation => ({
    weight: often.test(operation.id) ? 3 : 1,
    arbitrary: planOf(operation, document),
  }))
  const valid = fc.oneof(...weighted)
  const faulty = fc.oneof(...operations.map(operation => brokenPlanOf(operation, document)))
  const exactly = (length: number) => ({ minLength: length, maxLength: length })
  const round = fc.tuple(fc.array(valid, exactly(validARound)), fc.array(faulty, exactly(brokenARound)))

  const runs = lanes.map((lane, index) =>
    fc.assert(
      fc.asyncProperty(round, async ([allowed, forbidden]) => {
        for (const plan of allowed) {
          const { status } = await obey(lane, plan)
          count(`${plan.operation.id} ${status < 300 ? 'accepted' : 'refused'}`)
        }
        const before = await digestOf(service, lane.id)
        for (const { plan, nth } of forbidden) {
          const refused = breakPlan(plan, nth, lane, document)
          const answer = await refuses(lane, refused)
          count(`${plan.operation.id} broken`)
          count(`rule: ${refused.rule}`)
          if ((await digestOf(service, lane.id)) !== before)
            broken(refused.asked, answer, 'a refused request changed something')
        }
      }),
      { seed: seed + index, numRuns: rounds, endOnFailure: true },
    ),
  )
  const ended = await Promise.allSettled(runs)
  const ids = operations.map(({ id }) => id)
  const of = (kind: string) => ids.map(id => counted.get(`${id} ${kind}`) ?? 0)
  const sum = (numbers: number[]) => numbers.reduce((total, number) => total + number, 0)
  const [accepted, refused, faults] = [sum(of('accepted')), sum(of('refused')), sum(of('broken'))]
  const rules = [...counted.keys()].filter(key => key.startsWith('rule: ')).length
  console.log(
    `fuzz: ${accepted + refused + faults} requests on ${ids.length} endpoints (${accepted} accepted, ${refused} refused by what is ` +
      `stored, ${faults} broken in one of ${rules} ways; at least ${Math.min(...of('accepted'))} and ${Math.min(...of('broken'))} each), KITH_FUZZ_SEED=${seed}`,
  )
  for (const end of ended) if (end.status === 'rejected') throw end.reason.cause ?? end.reason
  expect(accepted + refused + faults).toBeGreaterThan(10_000)
  expect(Math.min(...of('accepted'), ...of('broken'))).toBeGreaterThan(0)
})
