import type { Static } from 'typebox'
import type { Limits } from '../config.ts'
import { Type } from '../json-schema.ts'

/** Body of a look-up: one of email, phone and external identifier. */
export function lookupBody({ emailCharacters, profileCharacters }: Limits) {
  const text = (maxLength: number, description: string) => Type.Optional(Type.String({ maxLength, description }))
  return Type.Object(
    {
      email: Type.Optional(
        Type.String({
          format: 'email',
          maxLength: emailCharacters,
          description: 'Compared in lower case. Dots and plus signs count.',
        }),
      ),
      mobile_prefix: text(profileCharacters, 'Not needed if `mobile_number` begins with + or 00.'),
      mobile_number: text(profileCharacters, 'Compared as the international number (E.164).'),
      external_id: Type.Optional(
        Type.String({ format: 'external-id', description: 'An external identifier, or an alias of a person.' }),
      ),
    },
    {
      additionalProperties: false,
      title: 'LookupBody',
      description: 'One of email, phone number and external identifier.',
      examples: [{ email: 'ada@example.com' }],
    },
  )
}
export type LookupBody = Static<ReturnType<typeof lookupBody>>
