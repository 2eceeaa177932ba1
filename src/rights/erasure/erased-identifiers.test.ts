import fc from 'fast-check'
import { expect, it } from 'vitest'
import { useService } from '../../../test/support/service.ts'
import { createShop } from '../../../test/support/shop.ts'
import { mobileKey } from '../../values/phone-numbers.ts'
import { contactsIn, type LoggedIdentifiers } from './erased-identifiers.ts'

const service = useService()

type Phone = { mobile_prefix: string | null; mobile_number: string | null }
const write: fc.Arbitrary<Partial<Phone>> = fc.record(
  {
    mobile_prefix: fc.constantFrom(null, '39', '+43'),
    mobile_number: fc.constantFrom(null, '333 1234567', '664 1234567', '+49 151 12345678'),
  },
  { requiredKeys: [] },
)
const keyOf = ({ mobile_prefix, mobile_number }: Phone) => mobileKey(mobile_prefix, mobile_number, null)

it('finds exactly the phones that a person ever had, whatever of prefix and number each change wrote', () => {
  fc.assert(
    fc.property(fc.array(write, { maxLength: 8 }), writes => {
      const states: Phone[] = [{ mobile_prefix: null, mobile_number: null }]
      const logged = writes.map((after): LoggedIdentifiers => {
        const state = states.at(-1)!
        const before = Object.fromEntries(Object.keys(after).map(name => [name, state[name as keyof Phone]]))
        states.push({ ...state, ...after })
        return { stack_id: 0, id: 'ada', before, after, is_given: false, is_own: true }
      })
      const expected = new Set(states.map(keyOf).filter(key => key !== null))
      const found = new Set(
        contactsIn(logged, null)
          .had.map(keyOf)
          .filter(key => key !== null),
      )
      expect(found).toEqual(expected)
    }),
  )
})

it('refuses after an erasure the phones that the person had, and no other', async () => {
  const shop = await createShop(service)
  await shop.ok('POST', '/v1/people', { external_id: 'ada', mobile_number: '333 1234567' })
  await shop.ok('PATCH', '/v1/people/ada', { mobile_prefix: '39', mobile_number: null })
  await shop.ok('PATCH', '/v1/people/ada', { mobile_number: '333 7654321' })
  await shop.ok('POST', '/v1/people/ada/erase', { reason: 'Request of the person' })
  const create = async (mobile_number: string) => (await shop.send('POST', '/v1/people', { mobile_number })).status
  expect([await create('+39 333 1234567'), await create('+39 333 7654321')]).toEqual([201, 409])
})
