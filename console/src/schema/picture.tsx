import type { Attribute, Definitions } from '@kith/client'
import { Link } from '@tanstack/react-router'
import { useEffect, useMemo, useRef, useState } from 'react'
import { useFormats, useMessages } from '../app/language.tsx'
import { ownerName } from '../entity/address.ts'
import { OwnerName } from '../entity/entity-link.tsx'
import { isRelationship, targetOwner } from '../entity/fields.ts'
import { ownersOf } from '../entity/schema.ts'
import { Button } from '../ui/button.tsx'
import { Section } from '../ui/page.tsx'
import { messages, type SchemaTexts } from './messages.ts'
import styles from './picture.module.css'
import {
  type Arrow,
  type Box,
  headerHeight,
  type Layout,
  layOut,
  type PlacedBox,
  pathOf,
  rowHeight,
} from './picture-layout.ts'

const zooms = [0.25, 0.5, 0.75, 1, 1.5, 2]

/** The stacks and the relationships between them, as a picture and as a list. */
export function Picture({ definitions }: { definitions: Definitions }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const [zoom, setZoom] = useState(1)
  const boxes = useMemo(() => boxesOf(definitions, texts), [definitions, texts])
  const layout = useMemo(() => layOut(boxes, 'people'), [boxes])
  const frame = useRef<HTMLElement>(null)
  // A picture that is larger than its frame is scrolled to the middle box.
  useEffect(() => {
    const people = layout.boxes.find(({ key }) => key === 'people')!
    frame.current?.scrollTo(
      people.x + people.width / 2 - frame.current.clientWidth / 2,
      people.y + people.height / 2 - frame.current.clientHeight / 2,
    )
  }, [layout])
  const smaller = zooms.findLast(known => known < zoom)
  const larger = zooms.find(known => known > zoom)
  const fit = () => setZoom(Math.min(1, (frame.current!.clientWidth - 2) / layout.width))
  return (
    <div className={styles.page}>
      <div className={styles.tools}>
        <p className="small">{texts.pictureHelp}</p>
        <div className="row centered">
          <Button onPress={() => setZoom(smaller!)} isDisabled={smaller === undefined} aria-label={texts.zoomOut}>
            −
          </Button>
          <span className={styles.percent}>{formats.percent(Math.round(zoom * 100) / 100)}</span>
          <Button onPress={() => setZoom(larger!)} isDisabled={larger === undefined} aria-label={texts.zoomIn}>
            +
          </Button>
          <Button onPress={fit}>{texts.zoomFit}</Button>
        </div>
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard must reach a region that scrolls */}
      <section ref={frame} className={styles.frame} tabIndex={0} aria-label={texts.pictureLabel}>
        <Drawing layout={layout} boxes={boxes} zoom={zoom} />
      </section>
      <Section title={texts.asList}>
        <LinkList definitions={definitions} />
      </Section>
    </div>
  )
}

function Drawing({ layout, boxes, zoom }: { layout: Layout; boxes: readonly OwnerBox[]; zoom: number }) {
  const [chosen, setChosen] = useState<string>()
  const { width, height } = layout
  const boxByKey = new Map(boxes.map(box => [box.key, box]))
  const linkOf = ({ source, row }: Arrow) => `${source}.${boxByKey.get(source)!.shown[row]!.key}`
  const isChosen = ({ source, target }: Arrow) => source === chosen || target === chosen
  return (
    // biome-ignore lint/a11y/noSvgWithoutTitle: the region around it has the name, and a title would become a tooltip
    <svg width={width * zoom} height={height * zoom} viewBox={`0 0 ${width} ${height}`}>
      <defs>
        {(['head', 'chosenHead'] as const).map(id => (
          <marker
            key={id}
            id={id}
            viewBox="0 0 8 8"
            refX="7"
            refY="4"
            markerWidth="10"
            markerHeight="10"
            markerUnits="userSpaceOnUse"
            orient="auto"
          >
            <path d="M 0 0.5 L 7.5 4 L 0 7.5 z" className={styles[id]!} />
          </marker>
        ))}
      </defs>
      <g>
        {layout.arrows
          .toSorted((one, other) => Number(isChosen(one)) - Number(isChosen(other)))
          .map(arrow => (
            <path
              key={linkOf(arrow)}
              d={pathOf(arrow.points)}
              className={isChosen(arrow) ? `${styles.arrow} ${styles.chosen}` : styles.arrow}
              markerEnd={isChosen(arrow) ? 'url(#chosenHead)' : 'url(#head)'}
              data-link={linkOf(arrow)}
            >
              <title>{`${linkOf(arrow)} → ${arrow.target}`}</title>
            </path>
          ))}
      </g>
      {layout.boxes.map(placed => (
        <OwnerBoxDrawing
          key={placed.key}
          placed={placed}
          box={boxByKey.get(placed.key)!}
          onChoose={isOver => setChosen(isOver ? placed.key : undefined)}
        />
      ))}
    </svg>
  )
}

type OwnerBoxProps = { placed: PlacedBox; box: OwnerBox; onChoose: (isOver: boolean) => void }

/** A box is a link to the attributes of its owner. Its arrows stand out while it has the focus or the pointer. */
function OwnerBoxDrawing({ placed: { x, y, width, height }, box, onChoose }: OwnerBoxProps) {
  const texts = useMessages(messages)
  return (
    // The inner svg clips texts that are too long.
    // biome-ignore lint/a11y/noSvgWithoutTitle: the link in it has the name
    <svg x={x} y={y} width={width} height={height}>
      <Link
        to="/schema"
        search={{ tab: 'attributes', owner: box.key }}
        className={styles.box}
        aria-label={box.name}
        onFocus={() => onChoose(true)}
        onBlur={() => onChoose(false)}
        onMouseEnter={() => onChoose(true)}
        onMouseLeave={() => onChoose(false)}
      >
        <rect x="1" y="1" width={width - 2} height={height - 2} rx="7" className={styles.frameOfBox} />
        <text x="12" y="21" className={styles.name}>
          {box.name}
        </text>
      </Link>
      {/* The rows let the pointer through to the link. */}
      <g className={styles.rows}>
        <text x="12" y="37" className={styles.type}>
          {box.subtitle}
        </text>
        {box.shown.map((row, index) => (
          <g key={row.key} transform={`translate(0 ${headerHeight + index * rowHeight})`}>
            <line x1="1" x2={width - 1} y1="0" y2="0" className={styles.line} />
            <text x="12" y="15" className={row.isLink ? `${styles.key} ${styles.link}` : styles.key}>
              {row.label}
            </text>
            <text x={width - 12} y="15" textAnchor="end" className={styles.type}>
              {row.type}
            </text>
          </g>
        ))}
        {box.hidden > 0 && (
          <text x="12" y={headerHeight + box.shown.length * rowHeight + 15} className={styles.type}>
            {texts.moreAttributes(box.hidden)}
          </text>
        )}
      </g>
    </svg>
  )
}

/** The content of the picture, for people who cannot see it. */
function LinkList({ definitions }: { definitions: Definitions }) {
  const texts = useMessages(messages)
  const linksOf = (owner: string) =>
    definitions.attributes.filter(
      attribute => attribute.owner === owner && attribute.state === 'active' && isRelationship(attribute),
    )
  const nameOf = (attribute: Attribute) => ownerName(targetOwner(attribute), definitions, texts.people)
  return (
    <ul className={styles.list}>
      {ownersOf(definitions).map(owner => (
        <li key={owner}>
          <Link to="/schema" search={{ tab: 'attributes', owner }}>
            <OwnerName owner={owner} />
          </Link>
          {linksOf(owner).length === 0 ? (
            <p className="small">{texts.noLinks}</p>
          ) : (
            <ul className={styles.links}>
              {linksOf(owner).map(attribute => (
                <li key={attribute.id}>
                  {attribute.cardinality === 'many'
                    ? texts.linksToMany(attribute.key, nameOf(attribute))
                    : texts.linksTo(attribute.key, nameOf(attribute))}
                </li>
              ))}
            </ul>
          )}
        </li>
      ))}
    </ul>
  )
}

/** People or a stack as a box of the picture, with the attributes that are its rows. */
type OwnerBox = Box & {
  name: string
  subtitle: string
  shown: { key: string; label: string; type: string; isLink: boolean }[]
  hidden: number
}

/** A box of a large schema shows fewer attributes, so that the picture stays readable. Relationships are always shown. */
const manyBoxes = 10
const maxPlainRows = { few: 12, many: 5 }
/** The approximate number of characters that fit in a box. */
const maxCharacters = { name: 26, label: 18, type: 14 }

const clip = (text: string, max: number) => (text.length > max ? `${text.slice(0, max - 1)}…` : text)

/** The boxes of all owners with their active attributes. */
function boxesOf(definitions: Definitions, texts: SchemaTexts): OwnerBox[] {
  const { stacks, attributes } = definitions
  const max = stacks.length >= manyBoxes ? maxPlainRows.many : maxPlainRows.few
  const targetName = (attribute: Attribute) => ownerName(targetOwner(attribute), definitions, texts.people)
  const rowOf = (attribute: Attribute) => {
    const { key, type, cardinality } = attribute
    const isLink = isRelationship(attribute)
    const suffix = cardinality === 'many' ? ' […]' : ''
    return {
      ...{ key, isLink, label: clip(key, maxCharacters.label) + suffix },
      type: clip(isLink ? targetName(attribute) : texts.types[type], maxCharacters.type),
    }
  }
  const boxOf = (key: string, name: string, subtitle: string): OwnerBox => {
    const own = attributes.filter(({ owner, state }) => owner === key && state === 'active')
    const plain = new Set(own.filter(attribute => !isRelationship(attribute)).slice(0, max))
    const shown = own.filter(attribute => isRelationship(attribute) || plain.has(attribute))
    const links = shown.flatMap((attribute, row) =>
      isRelationship(attribute) ? [{ row, target: targetOwner(attribute) }] : [],
    )
    const hidden = own.length - shown.length
    return {
      ...{ key, name: clip(name, maxCharacters.name), subtitle: clip(subtitle, maxCharacters.name), hidden, links },
      shown: shown.map(rowOf),
      rows: shown.length + Number(hidden > 0),
    }
  }
  return [
    boxOf('people', texts.people, ''),
    ...stacks.map(({ key, name, kind }) => boxOf(key, name, `${key} · ${texts.kinds[kind]}`)),
  ]
}
