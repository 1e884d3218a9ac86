/* SPDX-License-Identifier: Apache-2.0 */
/* Intrusive circular doubly linked list. A node that is on no list points to itself. */
#ifndef SBX_BASE_LIST_H
#define SBX_BASE_LIST_H

#include <stdbool.h>

#include "base/macros.h"

struct list {
	struct list *next, *prev;
};

#define LIST_INIT(name) { &(name), &(name) }

static inline void list_init(struct list *l)
{
	l->next = l->prev = l;
}

static inline bool list_empty(const struct list *l)
{
	return l->next == l;
}

static inline void list_insert_between_(struct list *n, struct list *prev, struct list *next)
{
	n->prev = prev;
	n->next = next;
	prev->next = n;
	next->prev = n;
}

/* Adds @n at the front of the list @head. */
static inline void list_add(struct list *head, struct list *n)
{
	list_insert_between_(n, head, head->next);
}

/* Adds @n at the end of the list @head. */
static inline void list_add_tail(struct list *head, struct list *n)
{
	list_insert_between_(n, head->prev, head);
}

/* Removes @n; harmless when it is on no list. */
static inline void list_del(struct list *n)
{
	n->prev->next = n->next;
	n->next->prev = n->prev;
	list_init(n);
}

/* Moves all entries of @from to the end of @to; @from ends empty. */
static inline void list_splice_tail(struct list *to, struct list *from)
{
	if (list_empty(from))
		return;
	from->next->prev = to->prev;
	to->prev->next = from->next;
	from->prev->next = to;
	to->prev = from->prev;
	list_init(from);
}

#define list_entry(ptr, type, member)        container_of(ptr, type, member)
#define list_first_entry(head, type, member) list_entry((head)->next, type, member)
#define list_last_entry(head, type, member)  list_entry((head)->prev, type, member)

#define list_for_each_entry(pos, head, member) \
	for (pos = list_first_entry(head, __typeof__(*pos), member); &pos->member != (head); \
	     pos = list_entry(pos->member.next, __typeof__(*pos), member))

/* As above; the body may remove (and free) @pos. */
#define list_for_each_entry_safe(pos, tmp, head, member) \
	for (pos = list_first_entry(head, __typeof__(*pos), member), \
	     tmp = list_entry(pos->member.next, __typeof__(*pos), member); &pos->member != (head); \
	     pos = tmp, tmp = list_entry(tmp->member.next, __typeof__(*tmp), member))

#endif
