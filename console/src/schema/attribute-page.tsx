import { type Attribute, type Definitions, ruleNames } from '@kith/client'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useState } from 'react'
import { useFormats, useMessages } from '../app/language.tsx'
import { useScope } from '../app/session.tsx'
import { scopesOf } from '../entity/entities.ts'
import { OwnerName } from '../entity/entity-link.tsx'
import { useDefinitions } from '../entity/schema.ts'
import { EmptyState, Facts, Page, Section } from '../ui/page.tsx'
import { AttributeEditor } from './attribute-editor.tsx'
import { Archived } from './consent-types-tab.tsx'
import { messages, type SchemaTexts } from './messages.ts'
import { ruleLabels } from './rule-labels.ts'
import styles from './schema.module.css'
import { Violations } from './violations.tsx'

const route = getRouteApi('/shell/schema/attributes/$attributeId')

/** One attribute: what it is, its rules, and the stored values that break them. */
export function AttributePage() {
  const texts = useMessages(messages)
  const { attributeId } = route.useParams()
  const { definitions } = useDefinitions()
  const attribute = definitions.attributes.find(({ id }) => String(id) === attributeId)
  if (!attribute)
    return (
      <Page title={texts.attribute}>
        <EmptyState title={texts.noSuchAttribute}>
          <Link to="/schema">{texts.schema}</Link>
        </EmptyState>
      </Page>
    )
  return <AttributeView key={attribute.id} attribute={attribute} definitions={definitions} />
}

function AttributeView({ attribute, definitions }: { attribute: Attribute; definitions: Definitions }) {
  const texts = useMessages(messages)
  const mayWrite = useScope('schema:write')
  const mayReadValues = useScope(scopesOf(attribute.owner).read)
  const [isEditing, setEditing] = useState(false)
  const { owner } = attribute
  return (
    <Page
      title={attribute.name}
      subtitle={
        <>
          <Link to="/schema" search={{ tab: 'attributes', owner }}>
            <OwnerName owner={owner} />
          </Link>{' '}
          · <code>{attribute.key}</code>
        </>
      }
    >
      {!isEditing && (
        <Section title={texts.whatItIs}>
          <Facts facts={factsOf(attribute, definitions, texts)} />
          <IndexProgress attribute={attribute} />
        </Section>
      )}
      {mayWrite && (
        <AttributeEditor
          attribute={attribute}
          stacks={definitions.stacks}
          isOpen={isEditing}
          onOpen={() => setEditing(true)}
          onClose={() => setEditing(false)}
        />
      )}
      {mayReadValues && attribute.state === 'active' && (
        <Section title={texts.violations}>
          <Violations attribute={attribute} />
        </Section>
      )}
    </Page>
  )
}

function factsOf(attribute: Attribute, { stacks }: Definitions, texts: SchemaTexts) {
  const { description, type, target_stack, cardinality, indexed, searchable, state } = attribute
  const target = target_stack && stacks.find(({ key }) => key === target_stack)
  return [
    [texts.description, description] as const,
    [texts.type, target ? `${texts.types.stack}: ${target.name}` : texts.types[type]] as const,
    [texts.cardinality, cardinality === 'many' ? texts.many : texts.one] as const,
    [texts.indexed, indexed ? texts.yes : texts.no] as const,
    [texts.searchable, type === 'text' && (searchable ? texts.yes : texts.no)] as const,
    [texts.rules, <Rules key="rules" attribute={attribute} />] as const,
    [texts.state, state === 'archived' && <Archived key="state" />] as const,
  ]
}

/** The most values of a list that are shown. */
const maxListed = 8

/** The rules of an attribute, each as a short text. */
export function Rules({ attribute }: { attribute: Attribute }) {
  const labels = useMessages(ruleLabels)
  const rules = ruleNames.flatMap(name => {
    const operand = attribute[name]
    if (operand === null || operand === false) return []
    const cut = Array.isArray(operand) && operand.length > maxListed ? [...operand.slice(0, maxListed), '…'] : operand
    return [labels[name].short?.(Array.isArray(cut) ? cut.join(', ') : String(cut)) ?? labels[name].name]
  })
  if (rules.length === 0) return <span className="small">—</span>
  return (
    <ul className={styles.rules}>
      {rules.map(rule => (
        <li key={rule}>
          <bdi>{rule}</bdi>
        </li>
      ))}
    </ul>
  )
}

/** How far the index of an attribute is, while it is being filled. */
function IndexProgress({ attribute: { index_state } }: { attribute: Attribute }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  if (index_state?.state !== 'filling') return null
  return (
    <p role="status">{texts.indexFilling(formats.number(index_state.indexed), formats.number(index_state.total))}</p>
  )
}
