import type { Static, TOptional, TSchema } from 'typebox'
import { nullable, Type } from './json-schema.ts'

/** The types of attributes. The last two are relationships. */
export const attributeTypes = ['text', 'number', 'boolean', 'date', 'datetime', 'json', 'person', 'stack'] as const
export type AttributeType = (typeof attributeTypes)[number]

/**
 * A rule of attributes: its meaning, the schema of its operand, and the types of attributes that it applies to. With
 * `hasTypedOperand`, the operand has one or more values of the attribute's type.
 */
type Rule = Readonly<{ description: string; schema: TSchema; types: readonly AttributeType[]; hasTypedOperand?: true }>

const bound = Type.Union([Type.Number(), Type.String(), Type.Null()])
const ordered = ['number', 'date', 'datetime'] as const

// The conditions on values besides the type, which apply to later writes, in the order of reads. Schemas, the query of
// violations, the client's lists, the forms of the console and the table in docs/api-people.md derive from this list.

const rules = {
  required: {
    description:
      'Whether creates, PUT, writes that complete a placeholder and writes of this key need a value. A PATCH of other keys passes ' +
      'without it, and placeholders have none. A list without elements and a relationship without links are no value.',
    schema: Type.Boolean(),
    types: attributeTypes,
  },
  unique: {
    description:
      'Whether no two entities of the owner have the same value. Needs `indexed: true` and cardinality `one`.',
    schema: Type.Boolean(),
    types: ['text', ...ordered],
  },
  enum: {
    description: 'The allowed values, with at most 32,768 bytes as JSON. Each is given once.',
    schema: nullable(
      Type.Array(Type.Union([Type.String(), Type.Number(), Type.Boolean()]), { minItems: 1, maxItems: 500 }),
    ),
    types: ['text', 'number', 'boolean', 'date', 'datetime'],
    hasTypedOperand: true,
  },
  pattern: {
    description:
      'A regular expression in the syntax of RE2 that a part of the value matches. `^` and `$` are its ends.',
    schema: nullable(Type.String({ minLength: 1, maxLength: 512 })),
    types: ['text'],
  },
  minimum: {
    description: 'The smallest allowed value. Times are compared as moments.',
    schema: bound,
    types: ordered,
    hasTypedOperand: true,
  },
  maximum: {
    description: 'The largest allowed value. Times are compared as moments.',
    schema: bound,
    types: ordered,
    hasTypedOperand: true,
  },
} as const satisfies Record<string, Rule>

type Rules = typeof rules
export type RuleName = keyof Rules

export const attributeRules: Readonly<Record<RuleName, Rule>> = rules

/** The names of the rules, in the order of reads. */
export const ruleNames = Object.keys(rules) as RuleName[]

/**
 * The conditions on the values of an attribute besides its type. They apply to later writes, and stored values stay.
 */
export type AttributeRules = { -readonly [Name in RuleName]: Static<Rules[Name]['schema']> }

/** The rules of an attribute without rules. */
export const noRules = Object.fromEntries(
  ruleNames.map(name => [name, operandOf(name).type === 'boolean' ? false : null]),
) as AttributeRules

type RuleSchemas = { [Name in RuleName]: Rules[Name]['schema'] }
type OptionalRuleSchemas = { [Name in RuleName]: TOptional<Rules[Name]['schema']> }

/** The types of attributes that a rule applies to, as a text. */
export function typesText(name: RuleName): string {
  const { types } = attributeRules[name]
  return types.length === attributeTypes.length ? 'all types' : types.map(type => `\`${type}\``).join(', ')
}

const schemasOf = <S>(build: (schema: TSchema) => TSchema) =>
  Object.fromEntries(
    ruleNames.map(name => {
      const { description, schema } = attributeRules[name]
      return [name, build({ ...schema, description: `For ${typesText(name)}. ${description}` })]
    }),
  ) as S

/** The schemas of the operands, as members of a read. */
export const ruleSchemas = schemasOf<RuleSchemas>(schema => schema)
/** The schemas of the operands, as optional members of a body. */
export const optionalRuleSchemas = schemasOf<OptionalRuleSchemas>(schema => Type.Optional(schema))

type Options = { type?: string; anyOf?: Options[] }

/** The schema of an operand that is not null. */
export function operandOf(name: RuleName): Options {
  const schema = rules[name].schema as Options
  return schema.anyOf?.length === 2 ? schema.anyOf[0]! : schema
}

export type OperandKind = 'flag' | 'list' | 'text' | 'number' | 'value'

/** The input of a rule's operand in a form. `value` is a value of the attribute's type. */
export function operandKind(name: RuleName): OperandKind {
  const { type } = operandOf(name)
  if (type === 'boolean') return 'flag'
  if (type === 'array') return 'list'
  if (attributeRules[name].hasTypedOperand) return 'value'
  return type === 'string' ? 'text' : 'number'
}
