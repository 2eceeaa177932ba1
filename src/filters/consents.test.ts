import fc from 'fast-check'
import { expect, it } from 'vitest'
import { useService } from '../../test/support/service.ts'

const service = useService()

type Consent = { consent_type_id: number; channel: string; state: boolean }

const channels = fc
  .uniqueArray(fc.constantFrom('email', 'sms'), { minLength: 1 })
  .map(names => names.map(channel => ({ channel })))
const consentType = fc.record({ channels, mandatory: fc.boolean(), default_state: fc.boolean() })
const patch = fc.record(
  { state: fc.constantFrom('active', 'archived'), channels, mandatory: fc.boolean(), default_state: fc.boolean() },
  { requiredKeys: [] },
)
const maxTypes = 4
const answer = fc.record({
  consent_type_id: fc.integer({ min: 1, max: maxTypes }),
  channel: fc.constantFrom('email', 'sms'),
  state: fc.boolean(),
})

const definitions = fc.record({
  types: fc.array(consentType, { maxLength: maxTypes - 1 }),
  answers: fc.array(answer, { minLength: 6, maxLength: 12 }),
  patches: fc.array(patch, { maxLength: maxTypes }),
})

/** Every condition on a consent: an absent type, channel or state matches any. */
const conditions = [undefined, 1, 2, 3, 4].flatMap(consent_type_id =>
  [undefined, 'email', 'sms'].flatMap(channel =>
    [undefined, true, false].map(state => ({
      ...(consent_type_id && { consent_type_id }),
      ...(channel && { channel }),
      ...(state !== undefined && { state }),
    })),
  ),
)

it('a filter finds exactly the people whose reads show such a consent, and is refused only if nobody has it', async () => {
  const property = fc.asyncProperty(definitions, async ({ types, answers, patches }) => {
    const { send } = await service.organization()
    const path = '/v1/schema/consent-types'
    for (const [index, type] of types.entries()) await send('POST', path, { ...type, key: `type${index}` })
    // One person without answers, and one with each answer that the definitions allow.
    await send('POST', '/v1/people', {})
    for (const given of answers) await send('POST', '/v1/people', { consents: [given] })
    for (const [index, changes] of patches.entries()) await send('PATCH', `${path}/${index + 1}`, changes)

    const { items } = (await send('POST', '/v1/people/list', {})).body.data
    for (const condition of conditions) {
      const matches = (consent: Consent) =>
        Object.entries(condition).every(([name, value]) => consent[name as keyof Consent] === value)
      const expected = items.filter(({ consents }: { consents: Consent[] }) => consents.some(matches))
      const { status, body } = await send('POST', '/v1/people/filter', { filter: { consents: { $some: condition } } })
      expect([condition, status === 400 ? [] : body.data.items]).toEqual([condition, expected])
    }
  })
  await fc.assert(property, { numRuns: 12 })
})
