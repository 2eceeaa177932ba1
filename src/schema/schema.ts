import { attribute } from '../attributes/schema.ts'
import { consent_type } from '../consents/schema.ts'
import { examplesOf } from '../organizations/definition-schema.ts'
import { stack } from '../stacks/schema.ts'
import { Type } from '../values/json-schema.ts'

/** All definitions of an organization. */
export const schema = Type.Object(
  { stacks: Type.Array(stack), attributes: Type.Array(attribute), consent_types: Type.Array(consent_type) },
  {
    title: 'Definitions',
    description: 'All definitions of an organization.',
    examples: [
      {
        stacks: examplesOf(stack),
        attributes: examplesOf(attribute),
        consent_types: examplesOf(consent_type),
      },
    ],
  },
)
