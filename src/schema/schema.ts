import type { Static, TOptional, TSchema, TUnknown } from 'typebox'
import { attribute } from '../attributes/schema.ts'
import { consent_type } from '../consents/schema.ts'
import { examplesOf } from '../organizations/definition-schema.ts'
import { stack } from '../stacks/schema.ts'
import { attributeRules, operandOf, type RuleName, ruleNames } from '../values/attribute-rules.ts'
import { closedObject, flag, nullable, pageLimit, Type, text, uuid } from '../values/json-schema.ts'

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

/** The names of possible violations: of the type, or of a rule of the attribute. */
const violationNames = ['type', ...ruleNames] as const
export type ViolationName = (typeof violationNames)[number]

const rule = Type.Enum([...violationNames])

type ProposableRule = Exclude<RuleName, 'unique'>

/** The rules that a request may propose. `unique` is excluded, because it concerns several values. */
export const proposableRules = ruleNames.filter((name): name is ProposableRule => name !== 'unique')

const proposed = 'Check this rule in place of the rules of the attribute: what a PATCH with it would leave.'

/** The schema of a proposed rule. In a query, values of the attribute's type are texts. */
function proposedSchema(name: ProposableRule): TSchema {
  const schema = operandOf(name)
  if (schema.type === 'array')
    return Type.Optional({
      ...schema,
      items: text(),
      description: `${proposed} Repeat the name for each value.`,
    })
  return Type.Optional({ ...(attributeRules[name].hasTypedOperand ? text() : schema), description: proposed })
}

const proposedRules = Object.fromEntries(proposableRules.map(name => [name, proposedSchema(name)])) as Record<
  ProposableRule,
  TOptional<TUnknown>
>

export const violationsQuery = closedObject({
  // The schema has a pattern, because the page at /docs/api would fill in the first value of an enum.
  rule: Type.Optional(
    Type.Unsafe<ViolationName>({
      type: 'string',
      pattern: `^(${violationNames.join('|')})$`,
      description:
        'Only violations of this rule. `unique` can be asked for before the attribute is unique, if its index is ready. ' +
        '`type` are values that were stored before the declaration and are of another type.',
    }),
  ),
  ...proposedRules,
  size: pageLimit(500, 'The maximum number of items on the page. Default: 50.'),
  after_id: Type.Optional(
    Type.String({
      format: 'entity-id',
      description: 'The `next_after_id` of the page before. If absent, the page is the first.',
    }),
  ),
})
export type ViolationsQuery = Static<typeof violationsQuery>

export const defaultViolations = 50

export const violation = Type.Object(
  {
    id: Type.Optional(uuid('The internal identifier of a person.')),
    record_id: Type.Optional(Type.String({ format: 'object-id', description: 'The internal identifier of a record.' })),
    external_id: nullable(text()),
    rules: Type.Array(rule, { description: 'The rules that the value violates.' }),
  },
  { title: 'Violation', description: 'An entity whose stored value stands against rules of an attribute.' },
)
export type Violation = Static<typeof violation>

export const violationPage = Type.Object(
  {
    items: Type.Array(violation, { description: 'In the order of the internal identifiers.' }),
    has_more: flag(
      'Whether entities follow that this page did not search. A page that takes longer than a second ends early and may be empty.',
    ),
    next_after_id: nullable(text('The `after_id` of the next page. Null at the end.')),
  },
  {
    title: 'ViolationPage',
    examples: [
      {
        items: [{ record_id: '65f1c0de5ca1ab1e0ddba11a', external_id: 'order-1', rules: ['minimum'] }],
        has_more: false,
        next_after_id: null,
      },
    ],
  },
)
