import { Resolver } from 'node:dns/promises'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { openApiDocument } from '../../src/process/app.ts'
import { sealLedgers } from '../support/ledger.ts'
import { isWhole } from '../support/runs.ts'
import { useOwnService } from '../support/service.ts'
import { formatRequest, sendAllowed } from './invariants.ts'
import { operationsOf } from './operations.ts'
import { assertRefused, buildInvalidRequest, invalidPlanOf } from './refusals.ts'
import { planOf, sealedPerson } from './requests.ts'
import { fuzzSeed } from './seed.ts'
import { createSender, type RawRequest, type Sender } from './sender.ts'
import { createTestTenant, readDigest, readHead, type TestTenant } from './test-tenant.ts'

const tenantCount = isWhole ? 12 : 4
const roundsPerTenant = 45
const validPerRound = 12
const invalidPerRound = 12

const service = useOwnService()
let sender: Sender
let tenants: TestTenant[]
beforeAll(async () => {
  sender = createSender(service)
  tenants = await Promise.all(Array.from({ length: tenantCount }, () => createTestTenant(service, sender)))
  await Promise.all(tenants.map(giveAnswers))
  await sealLedgers(service)
})
afterAll(async () => {
  sender.close()
})

/** Gives a tenant two sealed answers, of a person that only receipts address. Later answers are not sealed. */
async function giveAnswers(tenant: TestTenant) {
  const path = '/v1/people'
  const body = JSON.stringify({ external_id: sealedPerson, email_consent: true, sms_consent: false })
  const response = await sender.send(tenant.token, { method: 'POST', path, body })
  tenant.sealed = response.body.data.id
  tenant.head = await readHead(tenant)
}

/** The look-ups of names by DNS. */
const lookups = [vi.spyOn(Resolver.prototype, 'resolve4'), vi.spyOn(Resolver.prototype, 'resolve6')]
afterAll(() => vi.restoreAllMocks())

it('keeps the invariants on every endpoint for valid and invalid requests', { timeout: 300_000 }, async () => {
  const seed = fuzzSeed()
  const document = openApiDocument({ config: service.config })
  const operations = operationsOf(document)
  const counters = new Map<string, number>()
  const count = (key: string) => counters.set(key, (counters.get(key) ?? 0) + 1)
  // Writes are drawn three times as often as other operations, so most addresses name an existing entity, and so are operations that are
  // often refused.
  const isWrite =
    /^((create|upsert|batch|replace|patch)(Person|Record|People)|listPersonRelated|decideContact|patchAttribute)/
  const weighted = operations.map(operation => ({
    weight: isWrite.test(operation.id) ? 3 : 1,
    arbitrary: planOf(operation, document),
  }))
  const validPlan = fc.oneof(...weighted)
  const invalidPlan = fc.oneof(...operations.map(operation => invalidPlanOf(operation, document)))
  const ofLength = (length: number) => ({ minLength: length, maxLength: length })
  const round = fc.tuple(fc.array(validPlan, ofLength(validPerRound)), fc.array(invalidPlan, ofLength(invalidPerRound)))

  const runs = tenants.map((tenant, index) =>
    fc.assert(
      fc.asyncProperty(round, async ([validPlans, invalidPlans]) => {
        for (const plan of validPlans) {
          const { status } = await sendAllowed(tenant, plan)
          count(`${plan.operation.id} ${status < 300 ? 'accepted' : 'refused'}`)
        }
        const digestBefore = await readDigest(service, tenant.id)
        const refused: RawRequest[] = []
        for (const { plan, choice } of invalidPlans) {
          const { rule, request, ...expected } = buildInvalidRequest(plan, choice, tenant, document)
          await assertRefused(tenant, { rule, request, ...expected })
          refused.push(request)
          count(`${plan.operation.id} broken`)
          count(`rule: ${rule}`)
        }
        // No later write can restore the digest, so one comparison covers all requests of the round.
        if ((await readDigest(service, tenant.id)) !== digestBefore)
          throw new Error(
            `one of these refused requests changed stored data:\n${refused.map(formatRequest).join('\n')}`,
          )
      }),
      { seed: seed + index, numRuns: roundsPerTenant, endOnFailure: true },
    ),
  )
  const results = await Promise.allSettled(runs)
  const ids = operations.map(({ id }) => id)
  // Merges are dry runs here, so no person is merged. The tests of src/identity accept them.
  const accepting = ids.filter(id => !/^(un)?mergePeople/.test(id))
  const leastAccepted = Math.min(...accepting.map(id => counters.get(`${id} accepted`) ?? 0))
  const countsOf = (kind: string) => ids.map(id => counters.get(`${id} ${kind}`) ?? 0)
  const sum = (numbers: number[]) => numbers.reduce((total, number) => total + number, 0)
  const [accepted, refused, mutated] = [sum(countsOf('accepted')), sum(countsOf('refused')), sum(countsOf('broken'))]
  const rules = [...counters.keys()].filter(key => key.startsWith('rule: ')).length
  console.log(
    `fuzz: ${accepted + refused + mutated} requests on ${ids.length} endpoints (${accepted} accepted, ${refused} refused because of ` +
      `stored data, ${mutated} broken by one of ${rules} rules; at least ${leastAccepted} and ${Math.min(...countsOf('broken'))} each), KITH_FUZZ_SEED=${seed}`,
  )
  for (const result of results) if (result.status === 'rejected') throw result.reason.cause ?? result.reason
  expect(accepted + refused + mutated).toBe(tenantCount * roundsPerTenant * (validPerRound + invalidPerRound))
  // The webhooks of the tenants have names that never exist.
  expect(lookups.flatMap(({ mock }) => mock.calls)).toEqual([])
  expect(ids.filter(id => !counters.has(`${id} broken`))).toEqual([])
  // A third of the requests may miss an endpoint that accepts few of them.
  if (isWhole) expect(accepting.filter(id => !counters.has(`${id} accepted`))).toEqual([])
})
