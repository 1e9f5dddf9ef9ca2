"""`holdfast gateway …`: what owners do, for whoever runs the gateway and stands at its machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from holdfast.errors import HoldfastError, InputError

if TYPE_CHECKING:
    from pydantic import BaseModel

    from holdfast.service.catalog import Person
    from holdfast.service.gateway import Gateway


Declared = TypeVar("Declared", bound="BaseModel")


@click.group()
@click.option("--folder", type=click.Path(exists=True, path_type=Path), help="the gateway's own files")
@click.option("--database", help="postgresql://…, if the gateway keeps people, tokens and ledgers there")
@click.option("--anchors", type=click.Path(path_type=Path), help="where the anchors of ledgers are kept")
@click.pass_context
def gateway(context: click.Context, /, **flags: Any) -> None:
    """Manage a gateway from its own machine, also while it runs: analysts, tokens, people and how they sign in,
    tables, boards, caps.

    Settings may also come from HOLDFAST_… variables, as for `holdfast serve`. Each command is recorded in the chain of
    the catalog; what concerns a table's budget, in the chain of its ledger too.
    """
    context.obj = flags


@gateway.command()
@click.argument("table")
@click.argument("path")
@click.option(
    "--schema", type=click.Path(exists=True, path_type=Path), help="the columns, as TOML; not of a store"
)
@click.option("--relation", help="the table in the database, if PATH is postgresql://…")
@click.option("--target", type=click.Choice(["population", "table"]), default="population")
@click.option("--queries", type=int, help="for how many answers the intervals are planned")
@click.option("--set-aside", type=float, help="the share of the units for answers that end the promise")
@click.option("--epsilon", type=float)
@click.option("--delta", type=float)
@click.option("--rho", type=float)
@click.pass_obj
def register(flags: dict[str, Any], /, table: str, path: str, schema: Path | None, **terms: Any) -> None:
    """Register the rows at PATH (below a data folder, or postgresql://…) as TABLE, under a cap."""
    from holdfast.query.schema import Schema
    from holdfast.service.bodies import NewDataset

    columns = None if schema is None else Schema.from_toml(schema).to_json()
    given = {"id": table, "path": path, "schema": columns, "budget": _amounts(terms)} | terms
    with _opened(flags) as (guard, owner):
        found = _declared(NewDataset, given).register(guard, owner)
    apart = f" and {found.aside:,} set aside" if found.aside else ""
    click.echo(f"{table} has {found.rows:,} rows{apart}")


@gateway.command()
@click.argument("table")
@click.argument("person")
@click.option("--queries", type=int, help="how many of the table's answers they may use up")
@click.option("--epsilon", type=float)
@click.option("--delta", type=float)
@click.option("--rho", type=float)
@click.pass_obj
def admit(flags: dict[str, Any], /, table: str, person: str, **terms: Any) -> None:
    """Let PERSON (a name or an id) ask TABLE, or TABLE.aside, with a budget of their own; or change it."""
    from holdfast.service.bodies import Share

    with _opened(flags) as (guard, owner):
        share = _declared(Share, _amounts(terms) | terms)
        guard.admit(owner, table, _id(guard, person), share.given())
    click.echo(f"{person} may ask {table}")


@gateway.command()
@click.argument("table")
@click.argument("person")
@click.pass_obj
def withdraw(flags: dict[str, Any], table: str, person: str) -> None:
    """Withdraw PERSON (a name or an id) from TABLE, or from TABLE.aside alone, for good."""
    with _opened(flags) as (guard, owner):
        guard.withdraw(owner, table, _id(guard, person))
    click.echo(f"{person} asks {table} no more")


@gateway.command()
@click.argument("person")
@click.pass_obj
def end_tokens(flags: dict[str, Any], person: str) -> None:
    """End all tokens and page visits of PERSON."""
    with _opened(flags) as (guard, owner):
        guard.end_tokens(owner, _id(guard, person))
    click.echo(f"all tokens of {person} have ended")


@gateway.command()
@click.argument("person")
@click.pass_obj
def disable(flags: dict[str, Any], person: str) -> None:
    """Disable PERSON for good: all tokens end, and no new one is given."""
    with _opened(flags) as (guard, owner):
        guard.disable(owner, _id(guard, person))
    click.echo(f"{person} is disabled")


@gateway.command()
@click.argument("person")
@click.argument("name", required=False)
@click.pass_obj
def identity(flags: dict[str, Any], person: str, name: str | None) -> None:
    """Let PERSON enter the page as NAME of single sign-on (an e-mail or a subject); without NAME, no longer."""
    with _opened(flags) as (guard, owner):
        guard.set_identity(owner, _id(guard, person), name)
    click.echo(f"{person} enters by single sign-on" + (" no more" if name is None else f" as {name}"))


@gateway.command()
@click.argument("table")
@click.option("--epsilon", type=float)
@click.option("--delta", type=float)
@click.option("--rho", type=float)
@click.pass_obj
def cap(flags: dict[str, Any], /, table: str, **amounts: float | None) -> None:
    """Raise or lower the cap of TABLE; not below what was charged."""
    given = {name: amount for name, amount in amounts.items() if amount is not None}
    with _opened(flags) as (guard, owner):
        guard.set_cap(owner, table, given)
    click.echo(f"the cap of {table} is {', '.join(f'{name} {amount:g}' for name, amount in given.items())}")


@gateway.command()
@click.argument("table")
@click.option("--board", "kind", flag_value="leaderboard", help="TABLE is a leaderboard")
@click.option("--holdout", "kind", flag_value="holdout", help="TABLE is a holdout")
@click.pass_obj
def retire(flags: dict[str, Any], table: str, kind: str | None) -> None:
    """Retire TABLE (or a board) for good: it answers nothing more, and its rows cannot be registered again."""
    with _opened(flags) as (guard, owner):
        if kind is None:
            guard.retire(owner, table)
        else:
            guard.retire_board(owner, table, kind)
    click.echo(f"{table} is retired")


def _amounts(terms: dict[str, Any]) -> dict[str, float]:
    """The amounts of a budget that were given, taken out of the terms of a command."""
    amounts = {name: terms.pop(name) for name in ("epsilon", "delta", "rho")}
    return {name: amount for name, amount in amounts.items() if amount is not None}


def _declared(model: type[Declared], given: dict[str, Any]) -> Declared:
    """What a command declares, checked by the same model as the API's; what was not given it says itself."""
    from pydantic import ValidationError

    from holdfast.service.problem import unreadable

    try:
        return model.model_validate({name: part for name, part in given.items() if part is not None})
    except ValidationError as error:
        raise unreadable(error) from None


@contextmanager
def _opened(flags: dict[str, Any]) -> Iterator[tuple[Gateway, Person]]:
    """The gateway and its operator, who may do what an owner may; what a door refuses is an error of the command."""
    from holdfast.service.catalog import Person
    from holdfast.service.gateway import Gateway
    from holdfast.service.problem import CODES, Problem
    from holdfast.service.settings import from_environment

    opened = Gateway(from_environment(**flags))
    try:
        opened.catalog.deeds.refuse_older()
        yield opened, Person("", "the operator", "owner", "")
    except HoldfastError:
        raise
    except Problem as problem:
        raise InputError(problem.detail or CODES[problem.code][1]) from None
    finally:
        opened.close()


def _id(guard: Gateway, person: str) -> str:
    """The id of somebody by their name, or the id itself."""
    known = {one.name: one.id for one in guard.catalog.people()}
    return known.get(person, person)
